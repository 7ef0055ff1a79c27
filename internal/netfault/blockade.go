package netfault

// This file has the Blockade, which holds up the connections of a Path, and the deadlines that end a wait at a
// blockade.

import (
	"net"
	"os"
	"sync/atomic"
	"time"
)

// Blocked is the kind of traffic that a Blockade holds up.
type Blocked int

// The kinds of traffic that a Blockade can hold up.
const (
	Dials      Blocked = iota // all dials wait
	Write                     // one write waits
	LostWrite                 // one write waits; then its connection breaks and the write is lost
	Answers                   // all replies wait
	LostAnswer                // the reply to one write waits; then its connection breaks and the reply is lost
	Late                      // all writes seem to succeed, but their data is held back, see Snap
)

// Blockade holds up data between a client and its servers. A Path has at most one blockade at a time.
type Blockade struct {
	Caught chan struct{} // closed when something is held up

	path   *Path
	kind   Blocked
	pass   int                       // number of writes or replies that pass first
	at     func(written []byte) bool // selects the writes that are held up; nil means all
	on     *pathConn                 // the connection whose reply is lost
	opened chan struct{}
	broke  chan struct{} // closed when the blockade has broken a connection
}

// Hold sets a blockade that holds up writes, replies or dials after pass of them have passed.
func (p *Path) Hold(kind Blocked, pass int) *Blockade {
	return p.hold(&Blockade{kind: kind, pass: pass})
}

// BreakAt breaks the connection of the first write that at accepts, without holding it up: before that write with
// LostWrite, and before the reply to it with LostAnswer. The channel is closed when the connection is broken.
func (p *Path) BreakAt(kind Blocked, at func(written []byte) bool) (broke <-chan struct{}) {
	g := p.hold(&Blockade{kind: kind, at: at})
	close(g.opened)
	return g.broke
}

func (p *Path) hold(g *Blockade) *Blockade {
	g.path = p
	g.Caught, g.opened, g.broke = make(chan struct{}), make(chan struct{}), make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blockade = g
	return g
}

// Open ends the blockade and releases everything that it holds up.
func (g *Blockade) Open() {
	g.path.mu.Lock()
	defer g.path.mu.Unlock()
	if g.path.blockade == g {
		g.path.blockade = nil
	}
	close(g.opened)
}

// Catches reports whether something is held up within this time. It waits in short steps, so that a stop of the whole
// process costs only one step.
func (g *Blockade) Catches(within time.Duration) bool {
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

// stops reports whether the blockade holds up a write or, if written is empty, a reply. The caller holds the mutex,
// also for tell.
func (g *Blockade) stops(written []byte) bool {
	if g.at != nil && !g.at(written) {
		return false
	}
	g.pass--
	return g.pass < 0
}

func (g *Blockade) tell() {
	select {
	case <-g.Caught:
	default:
		close(g.Caught)
	}
}

// deadline is the time at which reads or writes that wait at a blockade fail, like the deadline of a socket, in Unix
// nanoseconds; 0 means never.
type deadline struct{ atomic.Int64 }

func (d *deadline) set(at time.Time) {
	if at.IsZero() {
		d.Store(0)
	} else {
		d.Store(at.UnixNano())
	}
}

// wait returns when the blockade is open. It returns an error if the deadline passes or the connection is gone before
// that.
func (d *deadline) wait(g *Blockade, gone <-chan struct{}) error {
	look := time.NewTicker(time.Millisecond) // checked repeatedly, because the deadline may change
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
