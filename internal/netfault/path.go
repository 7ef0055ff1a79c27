package netfault

// This file defines Path, with which a test watches, delays and breaks the connections of one client. blockade.go
// defines the blockades of a Path.

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// errBroken is the error that a client gets from a connection that a test has broken.
var errBroken = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

var errDown = errors.New("the network is down")

// Path holds all connections of one client process. The zero value is ready for use.
type Path struct {
	mu       sync.Mutex
	conns    []*pathConn // connections that are not broken
	open     int         // connections that the client has not closed
	dialing  int
	moved    time.Time // when bytes were last transferred in either direction
	wrote    time.Time // when bytes were last sent to a server
	waited   bool      // the client has waited for a message on some connection
	blockade *Blockade // nil if there is none
	muted    bool      // all data from the servers is lost
	down     bool      // all dials fail
}

// pathConn is one connection of a Path. Path.mu guards its fields.
type pathConn struct {
	net.Conn
	kept   []byte        // data that a blockade holds back
	broken bool          // the client sees it as broken
	closed bool          // by the client
	waits  bool          // the client has sent a subscription or a blocking command on it
	silent bool          // all data in both directions is lost
	gone   chan struct{} // closed when it is broken or closed
	at     *Blockade     // the blockade at which a reply waits; nil if there is none
	unread []byte        // data that arrived after the client's deadline; used only by its reader

	reads, writes deadline
}

// Dial dials with a net.Dialer and puts the connection on the path. It can be used as redis.UniversalOptions.Dialer.
func (p *Path) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return p.Through(new(net.Dialer).DialContext)(ctx, network, address)
}

// Through wraps a Dialer so that its connections are on the path.
func (p *Path) Through(dial Dialer) Dialer {
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

// watch adds a connection to the path and returns it with the hooks that apply blockades and breaks to it.
func (p *Path) watch(dialled net.Conn) net.Conn {
	c := &pathConn{Conn: dialled, gone: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, c)
	p.open++
	return Conn(dialled, Hooks{
		Write: func(b []byte, write func([]byte) (int, error)) (int, error) {
			if g := p.toWrite(c, b); g != nil {
				if err := c.writes.wait(g, c.gone); err != nil {
					return 0, cmp.Or(p.breakOf(c), err)
				}
				if g.kind == LostWrite {
					p.reset(c, g)
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
			if p.closes(c) { // Deliver needs the connection for the held-back data
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
			if c.broken { // its reader must not block again
				return nil
			}
			return set(at)
		},
	})
}

// past is a deadline that has already passed. It makes a blocked read return immediately.
var past = time.Unix(1, 0)

// receive returns data from the server. It first returns the data that arrived after an earlier read had reached its
// deadline.
func (c *pathConn) receive(b []byte, read func([]byte) (int, error)) (int, error) {
	if len(c.unread) == 0 {
		return read(b)
	}
	n := copy(b, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

func (p *Path) toDial() (*Blockade, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dialing++
	if p.down {
		return nil, errDown
	}
	if g := p.blockade; g != nil && g.kind == Dials {
		g.signalCaught()
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

// toWrite returns the blockade at which a write waits; nil means none.
func (p *Path) toWrite(c *pathConn, b []byte) *Blockade {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.blockade
	if g == nil || g.on != nil || g.kind != Write && g.kind != LostWrite && g.kind != LostAnswer || !g.stops(b) {
		return nil
	}
	if g.kind == LostAnswer {
		g.on = c
		return nil
	}
	p.blockade = nil // the other writes pass
	g.signalCaught()
	return g
}

// written records a write. If the path keeps or drops the data, kept is len(b) and the caller must not send it;
// otherwise kept is 0.
func (p *Path) written(c *pathConn, b []byte) (kept int, err error) {
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
	g := p.blockade
	if g == nil || g.kind != Late || !g.stops(b) {
		return 0, nil
	}
	c.kept = append(c.kept, b...)
	g.signalCaught()
	return len(b), nil
}

// arrived holds up the n bytes that the client is about to read until no blockade applies to them. It reports whether
// the path drops these bytes. It returns an error if the client stops waiting for them.
func (p *Path) arrived(c *pathConn, n int) (lost bool, err error) {
	g := p.toRead(c, n)
	if g != nil {
		if err := c.reads.wait(g, c.gone); err != nil {
			return false, err
		}
		if g.kind == LostAnswer {
			p.reset(c, g)
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

// toRead returns the blockade at which a reply waits; nil means none.
func (p *Path) toRead(c *pathConn, n int) *Blockade {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.blockade
	switch {
	case n == 0 || c.at != nil:
		return c.at
	case g == nil:
		return nil
	case g.kind == LostAnswer && g.on == c:
		p.blockade = nil
	case g.kind != Answers || !g.stops(nil):
		return nil
	}
	g.signalCaught()
	c.at = g
	return g
}

// reset closes a connection so that the client sees a reset, and closes the channel that BreakAt returned.
func (p *Path) reset(c *pathConn, g *Blockade) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.end()
	c.broken = true
	_ = c.Conn.Close()
	close(g.broke)
}

// end ends the reads and writes on the connection that wait at a blockade. The caller holds Path.mu.
func (c *pathConn) end() {
	if !c.broken && !c.closed {
		close(c.gone)
	}
}

// breakOf returns the error that the client gets from a broken connection; nil if it is not broken.
func (p *Path) breakOf(c *pathConn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.broken {
		return errBroken
	}
	return nil
}

// closes records that the client has closed a connection. It reports whether the path must keep the connection to the
// server open.
func (p *Path) closes(c *pathConn) (stays bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !c.closed {
		c.end()
		c.closed = true
		p.open--
	}
	stays = len(c.kept) > 0 || c.silent
	if !stays {
		p.conns = slices.DeleteFunc(p.conns, func(other *pathConn) bool { return other == c })
	}
	return stays
}

// Mute drops all data from the servers until Snap.
func (p *Path) Mute() { p.mu.Lock(); p.muted = true; p.mu.Unlock() }

// waits reports whether the data is a subscription or a blocking command. After sending such data, a client waits for a
// message.
func waits(sent []byte) bool {
	sent = bytes.ToLower(sent)
	return bytes.Contains(sent, []byte("subscribe\r\n")) || bytes.Contains(sent, []byte("blpop\r\n"))
}

// Silence drops all data, in both directions, on each current connection on which the client has waited for a message.
// A firewall that has lost the state of a connection does the same. Neither side notices, and the server does not
// notice when the client closes such a connection. All other connections, including new ones, work. Deliver closes the
// silent connections.
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

// Waited reports whether the client has ever waited for a message, on any connection.
func (p *Path) Waited() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.waited }

// Block makes all dials fail if down is true, and permits them again if it is false.
func (p *Path) Block(down bool) { p.mu.Lock(); p.down = down; p.mu.Unlock() }

// Snap breaks the current connections for the client, and removes the blockade. New connections work. Packets.Deliver
// can later send the data that the blockade has held back.
func (p *Path) Snap() Packets { return p.snap(func(*pathConn) bool { return true }) }

// Snap is Path.Snap, but breaks only the connections that have held-back data.
func (g *Blockade) Snap() Packets {
	return g.path.snap(func(c *pathConn) bool { return len(c.kept) > 0 })
}

func (p *Path) snap(breaks func(*pathConn) bool) (broken Packets) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var whole []*pathConn
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
	p.conns, p.blockade, p.muted = whole, nil, false
	return broken
}

// Keep holds back all data that the client writes from now on, until Snap.
func (p *Path) Keep() { p.Hold(Late, 0) }

// HangUp closes the current connections, as the end of a process does.
func (p *Path) HangUp() {
	for _, c := range p.Snap() {
		_ = c.Conn.Close()
	}
}

// Packets are connections that are silent or broken for the client, together with the data that a blockade has held
// back on them.
type Packets []*pathConn

// Deliver sends the held-back data, waits for the servers' replies, and closes the connections.
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

// Stall holds up all data from the servers if on is true, and releases the data if on is false.
func (p *Path) Stall(on bool) {
	if on {
		p.Hold(Answers, 0)
	} else if g := p.held(); g != nil {
		g.Open()
	}
}

func (p *Path) held() *Blockade { p.mu.Lock(); defer p.mu.Unlock(); return p.blockade }

// LastWrite returns when the client last sent data; the zero time means never.
func (p *Path) LastWrite() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wrote
}

// Last returns when data was last transferred in either direction, and whether a dial is in progress.
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
