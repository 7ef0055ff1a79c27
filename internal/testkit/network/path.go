// Package network is a client's way to its servers, which a test watches, delays and breaks.
package network

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lockbench/lockbench/internal/netfault"
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
	waited  bool      // the client has waited for a message on some connection
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
	waits  bool          // the client has subscribed on it, or blocked
	silent bool          // what is sent on it vanishes, either way
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
	c := &conn{Conn: dialled, gone: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, c)
	p.open++
	return netfault.Conn(dialled, netfault.Hooks{
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
	if c.silent {
		return len(b), nil
	}
	p.moved = time.Now()
	p.wrote = p.moved
	c.waits = c.waits || waits(b)
	p.waited = p.waited || c.waits
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
	if c.silent {
		return true, nil
	}
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
	stays = len(c.kept) > 0 || c.silent
	if !stays {
		p.conns = slices.DeleteFunc(p.conns, func(other *conn) bool { return other == c })
	}
	return stays
}

// deadline is when reads or writes that wait at a gate end, like those of a socket, in Unix nanoseconds; 0 means never.
type deadline struct{ atomic.Int64 }

func (d *deadline) set(at time.Time) {
	if at.IsZero() {
		d.Store(0)
	} else {
		d.Store(at.UnixNano())
	}
}

// wait returns when the gate is open. It returns an error if the deadline comes before, or the connection is gone.
func (d *deadline) wait(g *Gate, gone <-chan struct{}) error {
	look := time.NewTicker(time.Millisecond) // the deadline may be moved meanwhile
	defer look.Stop()
	for {
		select {
		case <-g.opened:
			return nil
		case <-gone:
			return net.ErrClosed
		case now := <-look.C:
			if at := d.Load(); at != 0 && now.UnixNano() >= at {
				return os.ErrDeadlineExceeded
			}
		}
	}
}

// Kind is what a Gate holds up.
type Kind int

// The kinds of gates.
const (
	Dials      Kind = iota // all dials wait
	Write                  // one write waits
	LostWrite              // one write waits, and then its connection breaks instead
	Answers                // all answers wait
	LostAnswer             // the answer to one write waits, and then its connection breaks instead
	Late                   // all writes seem to succeed, and are kept back: see Snap
)

// Gate holds up what a client and its servers send. A Path has one gate at a time.
type Gate struct {
	Caught chan struct{} // closed when something is held up

	path   *Path
	kind   Kind
	pass   int   // writes, or answers, that go through before
	on     *conn // the connection whose answer is lost
	opened chan struct{}
}

// Hold makes a gate that stops writes, or answers, after pass of them have gone through.
func (p *Path) Hold(kind Kind, pass int) *Gate {
	g := &Gate{path: p, kind: kind, pass: pass, Caught: make(chan struct{}), opened: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate = g
	return g
}

// Open lets what is held up go on, and holds nothing up any more.
func (g *Gate) Open() {
	g.path.mu.Lock()
	defer g.path.mu.Unlock()
	if g.path.gate == g {
		g.path.gate = nil
	}
	close(g.opened)
}

// Catches says whether something is held up within that time. It waits in short steps: if the
// whole process stops meanwhile, only one step is lost.
func (g *Gate) Catches(within time.Duration) bool {
	const step = 5 * time.Millisecond
	for look := time.Duration(0); ; look += step {
		select {
		case <-g.Caught:
			return true
		default:
		}
		if look >= within {
			return false
		}
		time.Sleep(step)
	}
}

// passed says whether all went through that may. The caller holds the mutex, also for tell.
func (g *Gate) passed() bool {
	g.pass--
	return g.pass < 0
}

func (g *Gate) tell() {
	select {
	case <-g.Caught:
	default:
		close(g.Caught)
	}
}

// Mute loses what the servers send until Snap.
func (p *Path) Mute() { p.mu.Lock(); p.muted = true; p.mu.Unlock() }

// waits says whether a client that sends this waits for a message then: it subscribes, or blocks.
func waits(sent []byte) bool {
	sent = bytes.ToLower(sent)
	return bytes.Contains(sent, []byte("subscribe\r\n")) || bytes.Contains(sent, []byte("blpop\r\n"))
}

// Silence has all vanish, either way, that is sent on the present connections on which the client has
// waited for a message, as if a firewall had forgotten them. Neither side sees it, and the server does
// not see that the client closes one. Other connections, and later ones, work. Deliver closes them.
func (p *Path) Silence() (silent Packets) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		if c.waits && !c.silent {
			c.silent = true
			silent = append(silent, c)
		}
	}
	return silent
}

// Waited says whether the client has ever waited for a message, on whatever connection.
func (p *Path) Waited() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.waited }

// Block sets whether dials fail.
func (p *Path) Block(down bool) { p.mu.Lock(); p.down = down; p.mu.Unlock() }

// Snap breaks the present connections for the client, and removes the gate; new connections
// work. What a gate has kept back can be delivered later.
func (p *Path) Snap() Packets { return p.snap(func(*conn) bool { return true }) }

// Snap is Path.Snap for the connections on which something was kept back.
func (g *Gate) Snap() Packets { return g.path.snap(func(c *conn) bool { return len(c.kept) > 0 }) }

func (p *Path) snap(breaks func(*conn) bool) (broken Packets) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var whole []*conn
	for _, c := range p.conns {
		if !breaks(c) {
			whole = append(whole, c)
			continue
		}
		broken = append(broken, c)
		c.end()
		c.broken = true
		_ = c.Conn.SetReadDeadline(past)
	}
	p.conns, p.gate, p.muted = whole, nil, false
	return broken
}

// Keep keeps back what is written from now on, until Snap.
func (p *Path) Keep() { p.Hold(Late, 0) }

// HangUp ends the present connections, as the end of a process does.
func (p *Path) HangUp() {
	for _, c := range p.Snap() {
		_ = c.Conn.Close()
	}
}

// Packets is connections that have broken for a client, with what was kept back on them.
type Packets []*conn

// Deliver sends what was kept back, and returns when the servers have answered it.
func (late Packets) Deliver() error {
	const patience = 20 * time.Second
	var problems []error
	for _, c := range late {
		if len(c.kept) > 0 {
			_ = c.Conn.SetDeadline(time.Now().Add(patience))
			_, err := c.Conn.Write(c.kept)
			if err == nil {
				_, err = c.Conn.Read(make([]byte, 1<<16))
			}
			problems = append(problems, err)
		}
		_ = c.Conn.Close()
	}
	return errors.Join(problems...)
}

// Stall makes what the servers send wait, or ends that wait.
func (p *Path) Stall(on bool) {
	if on {
		p.Hold(Answers, 0)
	} else if g := p.held(); g != nil {
		g.Open()
	}
}

func (p *Path) held() *Gate { p.mu.Lock(); defer p.mu.Unlock(); return p.gate }

// LastWrite is when something was last sent; the zero time means never.
func (p *Path) LastWrite() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wrote
}

// Last is when something last moved, and whether something is being dialled.
func (p *Path) Last() (moved time.Time, dialling bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.moved, p.dialing > 0
}

// Connections returns the number of connections that the client has not closed.
func (p *Path) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}
