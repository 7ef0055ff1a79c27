package gozk

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

var (
	// ErrOver is returned by calls of a session that the server has ended, or that was
	// closed.
	ErrOver = errors.New("the ZooKeeper session is over")
	// ErrIndeterminate is returned by a call whose connection broke: it may or may not have
	// been carried out.
	ErrIndeterminate = errors.New("the connection to ZooKeeper broke before the answer")
)

// Session is one session on ZooKeeper. The library keeps it alive and reconnects by itself.
// Unlike a zk.Conn it never becomes another session: it is over when a server says that it
// has ended it, or when no server was heard of for the timeout, as in Apache Curator. (A
// restarted server gives all sessions their whole timeout once more, so in the second case
// ephemeral nodes may outlive the session for that long. A server that has lost its data
// closes the connection of a client that knows more, without a message.) It is safe for
// concurrent use.
type Session struct {
	node Node
	conn *zk.Conn
	line *line

	life   context.Context // ends with the session
	die    context.CancelFunc
	calls  sync.WaitGroup
	ready  chan struct{} // closed once there is a session
	ended  chan struct{} // closed once the library's goroutines have ended
	finish chan bool     // ends them; true cuts the connection first

	mu            sync.Mutex
	closing       bool // Close or Abandon was called
	lost          chan struct{}
	indeterminate *time.Timer // fires when the session has timed out; nil while it is connected
	watches       map[string]<-chan zk.Event
}

// shortest is the shortest time in which a server has to answer to a new connection.
const shortest = time.Second

// Connect opens a session that the server ends when it has heard nothing of it for timeout;
// servers bound what they grant, see Session.Until. Connect waits for a server until ctx
// ends.
func (n Node) Connect(ctx context.Context, timeout time.Duration) (*Session, error) {
	s := &Session{
		node: n, ready: make(chan struct{}), ended: make(chan struct{}), finish: make(chan bool, 1),
		lost: make(chan struct{}), watches: map[string]<-chan zk.Event{},
	}
	s.life, s.die = context.WithCancel(context.Background())
	dial := n.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	s.line = &line{dial: dial, servers: max(len(n.Servers), 1), handshake: max(timeout, shortest)}
	s.line.ctx, s.line.cancel = context.WithCancel(context.Background())
	// The library's own goroutines begin before it returns the connection.
	s.mu.Lock()
	conn, events, err := zk.Connect(n.Servers, timeout, zk.WithLogger(silence{}), zk.WithLogInfo(false),
		zk.WithDialer(s.line.open), zk.WithHostProvider(&servers{line: s.line}), zk.WithEventCallback(s.happened),
		zk.WithMaxConnBufferSize(requests))
	s.conn = conn
	s.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("connect to ZooKeeper: %w", err)
	}
	go s.attend(events) // ends when Close or Abandon is called, or the server ends the session; both wait for it
	select {
	case <-s.ready:
		err = s.authenticate(ctx)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		s.line.mu.Lock()
		problem := s.line.fault
		s.line.mu.Unlock()
		s.Abandon()
		if problem != nil {
			err = fmt.Errorf("%w: %w", err, problem)
		}
		return nil, fmt.Errorf("open a session on %s: %w", strings.Join(n.Servers, ","), err)
	}
	return s, nil
}

// requests is the size of the largest request: the library sets its watches again with it.
const requests = 256 << 10

// silence is a zk.Logger that logs nothing: errors tell what is wrong.
type silence struct{}

func (silence) Printf(string, ...any) {}

func (s *Session) authenticate(ctx context.Context) error {
	if s.node.Auth == "" {
		return nil
	}
	_, err := call(ctx, s, func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.AddAuth("digest", []byte(s.node.Auth)) })
	return err
}

// attend ends the library's goroutines when the session is over.
func (s *Session) attend(events <-chan zk.Event) {
	defer close(s.ended)
	cut := <-s.finish
	s.line.close()
	if cut {
		s.line.hangUp()
	}
	s.conn.Close()
	s.line.hangUp()
	for range events { // ends with the library's goroutines
	}
}

// happened gets every event, from the library's goroutines, one after the other.
func (s *Session) happened(event zk.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if event.Type != zk.EventSession {
		delete(s.watches, event.Path)
		return
	}
	switch event.State {
	case zk.StateHasSession:
		if s.indeterminate != nil {
			s.indeterminate.Stop()
			s.indeterminate = nil
		}
		select {
		case <-s.ready:
		default:
			close(s.ready)
		}
	case zk.StateDisconnected:
		if s.indeterminate == nil && s.life.Err() == nil && !s.line.until().IsZero() {
			s.indeterminate = time.AfterFunc(time.Until(s.line.until()), s.despair)
		}
	case zk.StateExpired:
		s.lose()
		s.giveUp(true)
	}
}

// despair runs when no server was heard of for the timeout.
func (s *Session) despair() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.indeterminate != nil {
		s.lose()
		s.giveUp(true)
	}
}

// lose tells that leases may not be relied on any more. The caller has the mutex.
func (s *Session) lose() {
	select {
	case <-s.lost:
	default:
		close(s.lost)
	}
}

// giveUp ends the library's part, if that has not begun. The caller has the mutex.
func (s *Session) giveUp(cut bool) {
	if s.life.Err() == nil {
		s.die()
		s.finish <- cut // it has room
	}
}

// Close ends the session, and with it all its ephemeral nodes.
func (s *Session) Close() { s.end(false) }

// Abandon closes the connection without a message: the server ends the session after its
// timeout.
func (s *Session) Abandon() { s.end(true) }

func (s *Session) end(cut bool) {
	s.mu.Lock()
	s.closing = true
	s.giveUp(cut)
	s.mu.Unlock()
	<-s.ended
	s.calls.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.indeterminate != nil {
		s.indeterminate.Stop()
		s.indeterminate = nil
	}
	if cut { // what it holds lasts until then
		s.indeterminate = time.AfterFunc(time.Until(s.line.until()), s.despair)
	}
}

// Until returns when the newest request was sent that the server has answered, plus the
// timeout. A standalone server ends the session no earlier. In an ensemble the leader ends
// it, which may not have heard of that request: the server in between answers for itself.
func (s *Session) Until() time.Time { return s.line.until() }

// Lost returns a channel that is closed once what the session holds may not be relied on any
// more: the server has ended it, or no server was heard of for the timeout.
func (s *Session) Lost() <-chan struct{} { return s.lost }

// Over returns a channel that is closed when the session is lost, closed or abandoned.
func (s *Session) Over() <-chan struct{} { return s.life.Done() }

// Go runs do in the background, with a context that ends with the session. It returns false
// if the session is over; Close and Abandon wait for the end of do.
func (s *Session) Go(do func(life context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.life.Err() != nil {
		return false
	}
	s.calls.Go(func() { do(s.life) })
	return true
}
