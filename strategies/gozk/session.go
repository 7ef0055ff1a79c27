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
	// ErrOver is returned by calls of a session that has ended, or was closed.
	ErrOver = errors.New("the ZooKeeper session is over")
	// ErrIndeterminate is returned by a call whose connection broke: it may or may not have
	// been carried out.
	ErrIndeterminate = errors.New("the connection to ZooKeeper broke before the answer")
)

// Session is one session on ZooKeeper, which the library keeps alive and reconnects. Unlike a
// zk.Conn it never becomes another session: it is over when a server says that it has ended it,
// or when no server has answered for the timeout, as in Apache Curator. (A restarted server gives
// all sessions their whole timeout once more, so in the second case ephemeral nodes may outlive
// the session for that long.) It is safe for concurrent use.
type Session struct {
	node      Node
	handshake time.Duration // limits the server's answer to a new connection
	conn      *zk.Conn
	events    <-chan zk.Event // closed when the library has ended
	ready     func()          // there is a session

	lost, life context.Context // lost: by a timeout, or the server has ended it; life also ends by Close or Abandon
	lose, die  context.CancelFunc
	calls      sync.WaitGroup
	ended      chan struct{} // closed when keep has returned

	mu      sync.Mutex
	cut     bool     // hang up without a word
	socket  net.Conn // the last one
	dials   int      // since there was a session
	problem error    // the last one since then
	timeout time.Duration
	heard   time.Time // when the newest request was sent that was answered
	watches map[string]<-chan zk.Event
}

// Connect opens a session that the server ends when it has heard nothing of it for timeout;
// servers bound what they grant, see Session.Until. Connect waits for a server until ctx ends.
func (n Node) Connect(ctx context.Context, timeout time.Duration) (*Session, error) {
	const shortest = time.Second // for a handshake on a busy machine
	if len(n.Servers) == 0 {
		return nil, errors.New("connect to ZooKeeper: no servers are given")
	}
	ready := make(chan struct{})
	s := &Session{
		node: n, handshake: max(timeout, shortest), ready: sync.OnceFunc(func() { close(ready) }),
		ended: make(chan struct{}), watches: map[string]<-chan zk.Event{},
	}
	s.lost, s.lose = context.WithCancel(context.Background())
	s.life, s.die = context.WithCancel(s.lost)
	var err error
	s.conn, s.events, err = zk.Connect(n.Servers, timeout, zk.WithLogger(silence{}), zk.WithLogInfo(false),
		zk.WithDialer(s.dial), zk.WithHostProvider(&servers{session: s}), zk.WithEventCallback(s.happened),
		zk.WithMaxConnBufferSize(256<<10)) // the library sends all its watches again in requests of half of that
	if err != nil {
		return nil, fmt.Errorf("connect to ZooKeeper: %w", err)
	}
	select {
	case <-ready:
		go s.keep() // until the session is over; Close and Abandon wait for it
		if n.Auth != "" {
			_, err = call(ctx, s, func(c *zk.Conn) (bool, error) { return true, c.AddAuth("digest", []byte(n.Auth)) })
		}
		if err == nil {
			return s, nil
		}
		s.Close()
	case <-ctx.Done():
		s.die()
		s.hangUp()
		s.disconnect()
		err = ctx.Err()
		if s.problem != nil {
			err = fmt.Errorf("%w: %w", err, s.problem)
		}
	}
	return nil, fmt.Errorf("open a session on %s: %w", strings.Join(n.Servers, ","), err)
}

// silence is a zk.Logger that logs nothing: errors say what is wrong.
type silence struct{}

func (silence) Printf(string, ...any) {}

// keep asks the server something before the session times out, since the library does not say
// which of its own heartbeats were answered. No lock asks that. It disconnects when the session is
// over.
func (s *Session) keep() {
	defer close(s.ended)
	for s.life.Err() == nil {
		s.mu.Lock()
		pause := s.timeout / 4
		s.mu.Unlock()
		select {
		case <-time.After(min(pause, time.Until(s.Until()))):
		case <-s.life.Done():
		}
		if !time.Now().Before(s.Until()) {
			s.lose()
		}
		s.Go(func(life context.Context) { // the time is what counts, not the answer
			_, _ = call(life, s, func(c *zk.Conn) ([]zk.ACL, error) {
				list, _, err := c.GetACL("/zookeeper")
				return list, err
			})
		})
	}
	s.mu.Lock()
	cut := s.cut || s.lost.Err() != nil
	s.mu.Unlock()
	if cut || s.conn.State() != zk.StateHasSession {
		s.hangUp()
	}
	s.disconnect()
}

// disconnect ends the session on the server, if it is connected, and the library's goroutines.
func (s *Session) disconnect() {
	s.conn.Close()
	s.hangUp()
	for range s.events { // until the goroutines have ended
	}
}

// happened gets every event, from the library's goroutines, one after the other.
func (s *Session) happened(event zk.Event) {
	switch {
	case event.Type != zk.EventSession:
		s.mu.Lock()
		delete(s.watches, event.Path)
		s.mu.Unlock()
	case event.State == zk.StateHasSession:
		s.mu.Lock()
		s.dials, s.problem = 0, nil
		s.mu.Unlock()
		s.ready()
	case event.State == zk.StateExpired:
		s.lose()
	}
}

// Close ends the session, and with it all its ephemeral nodes.
func (s *Session) Close() {
	s.die()
	<-s.ended
	s.calls.Wait()
}

// Abandon closes the connection without a message: the server ends the session after its
// timeout.
func (s *Session) Abandon() {
	s.mu.Lock()
	s.cut = true
	s.mu.Unlock()
	s.Close()
	time.AfterFunc(time.Until(s.Until()), s.lose) // what it holds lasts until then
}

// Until returns when the newest request was sent that the server has answered, plus the
// timeout. A standalone server ends the session no earlier. In an ensemble the leader ends
// it, which may not have heard of that request: the server in between answers for itself.
func (s *Session) Until() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard.Add(s.timeout)
}

// Lost returns a channel that is closed once what the session holds may not be relied on any
// more: the server has ended it, or no server has answered for the timeout.
func (s *Session) Lost() <-chan struct{} { return s.lost.Done() }

// Over returns a channel that is closed when the session is lost, closed or abandoned.
func (s *Session) Over() <-chan struct{} { return s.life.Done() }

// Go runs do in the background, with a context that ends with the session. It returns false
// if the session is over; Close and Abandon wait for the end of do.
func (s *Session) Go(do func(life context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return false
	}
	s.calls.Go(func() { do(s.life) })
	return true
}
