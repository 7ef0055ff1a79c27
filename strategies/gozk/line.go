package gozk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// line is the connections of one session, one at a time. It knows what the library does not
// tell: the session's timeout as the server has granted it, and the last time at which the
// server is known to have heard of us.
type line struct {
	dial      func(ctx context.Context, network, addr string) (net.Conn, error)
	servers   int
	handshake time.Duration // that the server may take to answer to a new connection
	ctx       context.Context
	cancel    context.CancelFunc

	mu       sync.Mutex
	conn     *wire // the last one
	shut     bool
	failures int // dials since the last session
	fault    error
	timeout  time.Duration // granted
	answered time.Time     // when the newest request that was answered was sent
}

// errShut ends dials of a session that is over.
var errShut = errors.New("the session is over")

const (
	dialTimeout  = 5 * time.Second
	shortestWait = 20 * time.Millisecond
	longestWait  = time.Second
)

// open is the library's dialer. If no server answers, it pauses before it dials.
func (l *line) open(network, addr string, _ time.Duration) (net.Conn, error) {
	l.hangUp() // the library does not when a session has expired
	l.mu.Lock()
	rounds := l.failures / l.servers
	l.failures++
	l.mu.Unlock()
	if rounds > 0 {
		select {
		case <-time.After(min(shortestWait<<min(rounds-1, 10), longestWait)):
		case <-l.ctx.Done():
		}
	}
	ctx, cancel := context.WithTimeout(l.ctx, dialTimeout)
	defer cancel()
	conn, err := l.dial(ctx, network, addr)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && l.shut {
		err = errors.Join(errShut, conn.Close())
	}
	if err != nil {
		l.fault = err
		return nil, err
	}
	l.conn = newWire(conn, l)
	return l.conn, nil
}

func (l *line) succeeded() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures, l.fault = 0, nil
}

func (l *line) isShut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shut
}

// close prevents new connections. It closes a connection that has no session yet.
func (l *line) close() {
	l.cancel()
	l.mu.Lock()
	l.shut = true
	conn := l.conn
	l.mu.Unlock()
	if conn != nil && !conn.greeted() {
		_ = conn.Close()
	}
}

// hangUp closes the connection, if there is one.
func (l *line) hangUp() {
	l.mu.Lock()
	conn := l.conn
	l.mu.Unlock()
	if conn != nil {
		_ = conn.Close() // mostly it is closed already
	}
}

// broken records why there is no session, for callers that wait for one.
func (l *line) broken(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = err
}

// granted records the session's timeout, and that the server has answered what was sent at
// that time.
func (l *line) granted(timeout time.Duration, sent time.Time) {
	l.mu.Lock()
	l.timeout = timeout
	l.mu.Unlock()
	l.heard(sent)
}

func (l *line) heard(sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sent.After(l.answered) {
		l.answered = sent
	}
}

// until is when the session may end if the server hears nothing more from us.
func (l *line) until() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answered.Add(l.timeout)
}

// wire is one connection. The library writes a request in one piece.
type wire struct {
	net.Conn
	line  *line
	timer *time.Timer // of the handshake

	mu   sync.Mutex
	sent map[int32]time.Time // requests without an answer, by their number
	ping time.Time           // the first ping without an answer; pings have no numbers
	said bool                // the request for a session was sent
	met  bool                // and it was answered
	head [12]byte            // of the answer that is being read
	have int
	left int // bytes of its rest
}

const (
	pings         = -2 // as the number of a request
	notifications = -1 // as the number of an answer to no request
	// longest is more than any answer: ZooKeeper's own clients take 1 MB.
	longest = 64 << 20
)

func newWire(conn net.Conn, l *line) *wire {
	w := &wire{Conn: conn, line: l, sent: map[int32]time.Time{}}
	w.timer = time.AfterFunc(l.handshake, func() {
		_ = conn.Close()
	})
	return w
}

func (w *wire) greeted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.met
}

func (w *wire) Close() error {
	w.timer.Stop()
	return w.Conn.Close()
}

func (w *wire) Write(b []byte) (int, error) {
	w.note(b, time.Now())
	return w.Conn.Write(b)
}

// note records the time just before a request is sent. With the time after it a session would
// seem to last longer than it does.
func (w *wire) note(b []byte, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !w.said:
		w.said, w.sent[0] = true, now
	case len(b) < 8:
	case int32(binary.BigEndian.Uint32(b[4:])) == pings:
		if w.ping.IsZero() {
			w.ping = now
		}
	default:
		w.sent[int32(binary.BigEndian.Uint32(b[4:]))] = now
	}
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if err != nil && !w.greeted() {
		w.line.broken(fmt.Errorf("there is no answer to the request for a session: %w", err))
	}
	if wrong := w.read(b[:n]); wrong != nil {
		w.line.broken(wrong)
		return 0, wrong
	}
	return n, err
}

// read follows the answers. Each has its length, then its number; the first one, to the
// request for a session, has the protocol's version in place of the number, and then the
// timeout.
func (w *wire) read(b []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(b) > 0 {
		if w.left > 0 {
			n := min(w.left, len(b))
			b, w.left = b[n:], w.left-n
			continue
		}
		want := 8
		if !w.met {
			want = 12
		}
		n := copy(w.head[w.have:want], b)
		b, w.have = b[n:], w.have+n
		length := int(int32(binary.BigEndian.Uint32(w.head[:])))
		if w.have >= 4 && (length < want-4 || length > longest) {
			return fmt.Errorf("the server does not speak ZooKeeper's protocol: it said %q", w.head[:w.have])
		}
		if w.have == want {
			w.left, w.have = length-(want-4), 0
			w.answer()
		}
	}
	return nil
}

// answer handles the head of an answer.
func (w *wire) answer() {
	number := int32(binary.BigEndian.Uint32(w.head[4:]))
	switch {
	case !w.met:
		w.met = true
		w.timer.Stop()
		if timeout := int32(binary.BigEndian.Uint32(w.head[8:])); timeout > 0 { // 0: the session has expired
			w.line.granted(time.Duration(timeout)*time.Millisecond, w.sent[0])
		}
		delete(w.sent, 0)
	case number == notifications:
	case number == pings:
		if !w.ping.IsZero() {
			w.line.heard(w.ping)
			w.ping = time.Time{}
		}
	default:
		if sent, ok := w.sent[number]; ok {
			w.line.heard(sent)
			delete(w.sent, number)
		}
	}
}
