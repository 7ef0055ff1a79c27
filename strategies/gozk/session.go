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

	"github.com/lockbench/lockbench/strategies/internal/background"
)

var (
	// ErrOver is returned by calls of a session that has ended, or was closed.
	ErrOver = errors.New("the ZooKeeper session has ended")
	// ErrIndeterminate is returned by a call whose connection broke, so that the server may or may not have executed it.
	ErrIndeterminate = errors.New("the connection to ZooKeeper broke before the reply")
)

// Session is one session on ZooKeeper, which the library keeps alive and reconnects. A zk.Conn opens a new session when
// the old session has expired. A Session, in contrast, is over when a server reports its end, or when no server has
// sent anything for the timeout, as in Apache Curator. In the second case, ephemeral nodes may outlive the Session by a
// timeout, because a restarted server gives all sessions their full timeout again. A Session is safe for concurrent
// use.
type Session struct {
	node   Node
	conn   *zk.Conn
	events <-chan zk.Event // closed when the library has ended
	ready  func()          // signals that there is a session

	lost, life context.Context // lost ends by a timeout or by the server; life also by Close or Abandon
	lose, die  context.CancelFunc
	silence    *time.Timer // ends lost after the timeout
	calls      background.Group
	ended      chan struct{} // closed when the library has ended

	mu      sync.Mutex
	timeout time.Duration // the requested timeout, then the granted one
	cut     bool          // close the connection without a message
	socket  net.Conn      // the last connection
	dials   int           // dials since the last session
	problem error         // the last error since then
}

// Connect opens a session that the server ends when it has received nothing from the client for timeout. The server may
// change the timeout to a value within its own limits. Connect waits for a server until ctx ends.
func (n Node) Connect(ctx context.Context, timeout time.Duration) (*Session, error) {
	if len(n.Servers) == 0 {
		return nil, errors.New("connect to ZooKeeper: no servers are given")
	}
	ready := make(chan struct{})
	s := &Session{
		node: n, timeout: timeout, ready: sync.OnceFunc(func() { close(ready) }), ended: make(chan struct{}),
	}
	s.lost, s.lose = context.WithCancel(context.Background())
	s.life, s.die = context.WithCancel(s.lost)
	s.silence = time.AfterFunc(timeout, s.lose)
	s.silence.Stop() // started when a server sends something
	var err error
	s.conn, s.events, err = zk.Connect(n.Servers, timeout, zk.WithLogger(discardLogger{}), zk.WithLogInfo(false),
		zk.WithDialer(s.dial), zk.WithHostProvider(&servers{session: s}), zk.WithEventCallback(s.happened),
		zk.WithMaxConnBufferSize(256<<10)) // the library sends all its watches again in requests of half this size
	if err != nil {
		return nil, fmt.Errorf("connect to ZooKeeper: %w", err)
	}
	go s.disconnect() // runs when the session is over; Close and Abandon wait for it
	select {
	case <-ready:
		if n.Auth != "" {
			_, err = call(ctx, s, func(c *zk.Conn) (bool, error) { return true, c.AddAuth("digest", []byte(n.Auth)) })
		}
	case <-ctx.Done():
		err = ctx.Err()
		s.mu.Lock()
		s.cut = true
		if s.problem != nil {
			err = fmt.Errorf("%w: %w", err, s.problem)
		}
		s.mu.Unlock()
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("open a session on %s: %w", strings.Join(n.Servers, ","), err)
	}
	return s, nil
}

// discardLogger is a zk.Logger that logs nothing, because the errors of the calls describe every failure.
type discardLogger struct{}

func (discardLogger) Printf(string, ...any) {}

// disconnect waits until the session is over. It then ends the session on the server, if the client is connected, and
// ends the library's goroutines.
func (s *Session) disconnect() {
	defer close(s.ended)
	<-s.life.Done()
	s.mu.Lock()
	cut := s.cut || s.lost.Err() != nil
	s.mu.Unlock()
	if cut || s.conn.State() != zk.StateHasSession {
		s.hangUp()
	}
	s.conn.Close()
	s.hangUp()
	for range s.events { // until the goroutines have ended
	}
}

// happened is the library's callback for events. It signals Connect when the server grants the session, and ends the
// session when the server reports that it has expired.
func (s *Session) happened(event zk.Event) {
	switch {
	case event.Type != zk.EventSession:
	case event.State == zk.StateHasSession:
		s.mu.Lock()
		s.dials, s.problem = 0, nil
		s.mu.Unlock()
		s.ready()
	case event.State == zk.StateExpired:
		s.lose()
	}
}

// Close ends the session, and waits until its calls and the library's goroutines have ended. The server deletes the
// session's ephemeral nodes. If the client is not connected, the server does so after the timeout.
func (s *Session) Close() {
	s.die()
	<-s.ended
	s.calls.Close()
	s.silence.Stop()
}

// Abandon closes the connection without a message. The server ends the session after its timeout, and the session's
// locks last until then.
func (s *Session) Abandon() {
	s.mu.Lock()
	s.cut = true
	s.mu.Unlock()
	s.Close()
}

// Lost returns a channel that is closed when the holder can no longer rely on the session's locks: the server has
// ended the session, or no server has sent anything for the timeout.
func (s *Session) Lost() <-chan struct{} { return s.lost.Done() }

// Over returns a channel that is closed when the session is lost, closed or abandoned.
func (s *Session) Over() <-chan struct{} { return s.life.Done() }

// IsOver reports whether the session is lost, closed or abandoned.
func (s *Session) IsOver() bool { return s.life.Err() != nil }

// Go runs do in the background, with a context that ends with the session. If the session is over, Go returns false and
// does not call do. Close and Abandon wait for the end of do.
func (s *Session) Go(do func(life context.Context)) bool {
	return s.life.Err() == nil && s.calls.Go(func() { do(s.life) })
}
