// Package network is a client's way to its servers, which a test watches, delays and breaks.
package network

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/lockbench/lockbench/internal/intercept"
)

// errBroken is what a client sees of a connection that a test has broken.
var errBroken = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

var errDown = errors.New("the network is down")

// Dial opens a connection.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Path is all connections of one client process. The zero value is ready for use.
type Path struct {
	mu      sync.Mutex
	conns   []*conn // those that are not broken
	open    int     // connections that the client has not closed
	dialing int
	moved   time.Time // when bytes last went either way
	wrote   time.Time // when bytes last went to a server
	gate    *Gate     // nil for none
	muted   bool      // what the servers send is lost
	down    bool      // nothing can be dialled
}

// conn is one connection. Path.mu guards its fields.
type conn struct {
	net.Conn
	kept   []byte        // what the network keeps back
	broken bool          // as the client sees it
	closed bool          // by the client
	gone   chan struct{} // closed when it is broken or closed
	at     *Gate         // the gate at which an answer waits; nil for none
	unread []byte        // what has come, and the client's deadline was over; only its reader uses it

	reads, writes deadline
}

// Dial is a redis.UniversalOptions' Dialer.
func (p *Path) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return p.Through(new(net.Dialer).DialContext)(ctx, network, address)
}

// Through returns a function that dials with another one, and puts the connections on the path.
func (p *Path) Through(dial Dial) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		g, err := p.toDial()
		defer p.dialled()
		if err != nil {
			return nil, err
		}
		if g != nil {
			select {
			case <-g.opened:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return p.watch(c), nil
	}
}

// watch puts a connection on the path.
func (p *Path) watch(dialled net.Conn) net.Conn {
	c := &conn{Conn: dialled, gone: make(chan struct{}), reads: newDeadline(), writes: newDeadline()}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, c)
	p.open++
	return intercept.Conn(dialled, intercept.Hooks{
		Write: func(b []byte, write func([]byte) (int, error)) (int, error) {
			if g := p.toWrite(c); g != nil {
				if err := c.writes.wait(g, c.gone); err != nil {
					return 0, cmp.Or(p.breakOf(c), err)
				}
				if g.kind == LostWrite {
					p.reset(c)
				}
			}
			if n, err := p.written(c, b); n > 0 || err != nil {
				return n, err
			}
			return write(b)
		},
		Read: func(b []byte, read func([]byte) (int, error)) (int, error) {
			for p.breakOf(c) == nil {
				n, err := c.receive(b, read)
				lost, late := p.arrived(c, n)
				if p.breakOf(c) != nil {
					break
				}
				if late != nil {
					c.unread = slices.Concat(b[:n], c.unread)
					return 0, late
				}
				if !lost || err != nil {
					return n, err
				}
			}
			return 0, errBroken
		},
		Close: func(hangUp func() error) error {
			if p.closes(c) { // the bytes that are kept back still need the connection
				return dialled.SetReadDeadline(past)
			}
			return hangUp()
		},
		Deadline: func(reads, writes bool, at time.Time, set func(time.Time) error) error {
			if reads {
				c.reads.set(at)
			}
			if writes {
				c.writes.set(at)
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if c.broken { // its reader must not wait again
				return nil
			}
			return set(at)
		},
	})
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// receive reads what has come, first what no reader has taken.
func (c *conn) receive(b []byte, read func([]byte) (int, error)) (int, error) {
	if len(c.unread) == 0 {
		return read(b)
	}
	n := copy(b, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

func (p *Path) toDial() (*Gate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dialing++
	if p.down {
		return nil, errDown
	}
	if g := p.gate; g != nil && g.kind == Dials {
		g.tell()
		return g, nil
	}
	return nil, nil
}

func (p *Path) dialled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dialing--
	p.moved = time.Now()
}

// toWrite returns the gate at which a write waits; nil means none.
func (p *Path) toWrite(c *conn) *Gate {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.gate
	if g == nil || g.on != nil || g.kind != Write && g.kind != LostWrite && g.kind != LostAnswer || !g.passed() {
		return nil
	}
	if g.kind == LostAnswer {
		g.on = c
		return nil
	}
	p.gate = nil // the other writes go through
	g.tell()
	return g
}

// written notes a write, and returns how much of it the network keeps back: all or nothing.
func (p *Path) written(c *conn, b []byte) (kept int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.broken {
		return 0, errBroken
	}
	p.moved = time.Now()
	p.wrote = p.moved
	g := p.gate
	if g == nil || g.kind != Late || !g.passed() {
		return 0, nil
	}
	c.kept = append(c.kept, b...)
	g.tell()
	return len(b), nil
}

// arrived holds n bytes up, if a gate does, and says whether they are lost. An error means that the client did not
// wait for them.
func (p *Path) arrived(c *conn, n int) (lost bool, err error) {
	g := p.toRead(c, n)
	if g != nil {
		if err := c.reads.wait(g, c.gone); err != nil {
			return false, err
		}
		if g.kind == LostAnswer {
			p.reset(c)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c.at = nil
	p.moved = time.Now()
	return p.muted, nil
}

// toRead returns the gate at which an answer waits; nil means none.
func (p *Path) toRead(c *conn, n int) *Gate {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.gate
	switch {
	case n == 0 || c.at != nil:
		return c.at
	case g == nil:
		return nil
	case g.kind == LostAnswer && g.on == c:
		p.gate = nil
	case g.kind != Answers || !g.passed():
		return nil
	}
	g.tell()
	c.at = g
	return g
}

func (p *Path) reset(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.end()
	c.broken = true
	_ = c.Conn.Close()
}

// end ends what waits at a gate. The caller holds the mutex.
func (c *conn) end() {
	if !c.broken && !c.closed {
		close(c.gone)
	}
}

// breakOf is how the client sees that a connection has broken; nil while it has not.
func (p *Path) breakOf(c *conn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.broken {
		return errBroken
	}
	return nil
}

// closes counts a closed connection, and says whether it must stay open all the same.
func (p *Path) closes(c *conn) (stays bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !c.closed {
		c.end()
		c.closed = true
		p.open--
	}
	if len(c.kept) == 0 {
		p.conns = slices.DeleteFunc(p.conns, func(other *conn) bool { return other == c })
	}
	return len(c.kept) > 0
}

// deadline is when reads or writes end that wait at a gate, as those of a socket do.
type deadline struct {
	mu    sync.Mutex
	at    time.Time // zero for never
	moved chan struct{}
}

func newDeadline() deadline { return deadline{moved: make(chan struct{})} }

func (d *deadline) set(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.moved)
	d.at, d.moved = at, make(chan struct{})
}

// wait returns when the gate is open. It returns an error if the deadline comes before, or the connection is gone.
func (d *deadline) wait(g *Gate, gone <-chan struct{}) error {
	for {
		d.mu.Lock()
		at, moved := d.at, d.moved
		d.mu.Unlock()
		var over <-chan time.Time
		if !at.IsZero() {
			over = time.After(time.Until(at))
		}
		select {
		case <-g.opened:
			return nil
		case <-over:
			return os.ErrDeadlineExceeded
		case <-gone:
			return net.ErrClosed
		case <-moved:
		}
	}
}
