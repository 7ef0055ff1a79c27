package locktest

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// errBroken is what a client sees of a connection that a test has broken.
var errBroken = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

// holdAnswers makes a gate for the servers' answers; it lets pass answers through before.
func (w *wire) holdAnswers(pass int) *gate { return w.close(&gate{answers: true, pass: pass}) }

// loseWrite makes a gate for the write that comes after pass others. When it is opened
// that connection breaks instead.
func (w *wire) loseWrite(pass int) *gate { return w.close(&gate{drops: true, pass: pass}) }

// loseAnswer makes a gate for the answer to the write that comes after pass others. When
// it is opened that connection breaks instead.
func (w *wire) loseAnswer(pass int) *gate { return w.close(&gate{loses: true, pass: pass}) }

// toRead returns the gate that a read has come to; nil means none.
func (w *wire) toRead(c *conn, n int) *gate {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.gate
	if g == nil || n == 0 {
		return nil
	}
	switch {
	case g.loses && g.on == c:
		w.gate = nil
	case !g.answers:
		return nil
	case g.pass > 0:
		g.pass--
		return nil
	}
	tell(g.caught)
	return g
}

// keptBack is what a client has written and the network keeps back: the client sees its
// connection break, and the servers get the bytes later.
type keptBack struct {
	wire   *wire
	pass   int // writes that go through before
	conns  []*conn
	caught chan struct{}
}

// keepBack keeps back all that is written after pass writes.
func (w *wire) keepBack(pass int) *keptBack {
	l := &keptBack{wire: w, pass: pass, caught: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = l
	return l
}

// keeps says whether what is written is kept back.
func (w *wire) keeps(c *conn, b []byte) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.late
	switch {
	case c.broken:
		return true, errBroken
	case l == nil:
		return false, nil
	case l.pass > 0:
		l.pass--
		return false, nil
	}
	if len(c.kept) == 0 {
		l.conns = append(l.conns, c)
	}
	c.kept = append(c.kept, b...)
	tell(l.caught)
	return true, nil
}

// snap breaks the connections on which something was kept back. Other connections, and new
// ones, work.
func (l *keptBack) snap() {
	l.wire.mu.Lock()
	defer l.wire.mu.Unlock()
	l.wire.late = nil
	for _, c := range l.conns {
		c.broken = true
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// arrive sends the servers what was kept back, and returns when they have answered it.
func (l *keptBack) arrive(patience time.Duration) error {
	var problems []error
	for _, c := range l.conns {
		_ = c.Conn.SetDeadline(time.Now().Add(patience))
		_, err := c.Conn.Write(c.kept)
		if err == nil {
			_, err = c.Conn.Read(make([]byte, 1<<12))
		}
		_ = c.Conn.Close()
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

func (w *wire) breaks(c *conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.broken = true
}

func (w *wire) isBroken(c *conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return c.broken
}

// closes counts a closed connection, and says whether it must stay open all the same.
func (w *wire) closes(c *conn) (stays bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !c.closed {
		c.closed = true
		w.open--
	}
	return len(c.kept) > 0
}

// catches waits until something is kept back or the waiter is over, and says which.
func (l *keptBack) catches(w *waiter) bool { return before(l.caught, w) }

// catchesBefore waits until something is held up or the waiter is over, and says which.
func (g *gate) catchesBefore(w *waiter) bool { return before(g.caught, w) }

func before(caught <-chan struct{}, w *waiter) bool {
	timer := time.NewTimer(w.s.patience)
	defer timer.Stop()
	select {
	case <-caught:
		return true
	case <-w.done:
	case <-timer.C:
	}
	select {
	case <-caught: // both happened
		return true
	default:
		return false
	}
}
