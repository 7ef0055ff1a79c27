package netfault

// What holds up the connections of a Path: a Blockade, and the deadlines that end a wait at one.

import (
	"net"
	"os"
	"sync/atomic"
	"time"
)

// Blocked is what a Blockade holds up.
type Blocked int

// What a Blockade can hold up.
const (
	Dials      Blocked = iota // all dials wait
	Write                     // one write waits
	LostWrite                 // one write waits, and then its connection breaks instead
	Answers                   // all answers wait
	LostAnswer                // the answer to one write waits, and then its connection breaks instead
	Late                      // all writes seem to succeed, and are kept back: see Snap
)

// Blockade holds up what a client and its servers send. A Path has one blockade at a time.
type Blockade struct {
	Caught chan struct{} // closed when something is held up

	path   *Path
	kind   Blocked
	pass   int                       // writes, or answers, that go through before
	at     func(written []byte) bool // the writes that do not go through; nil for all
	on     *pathConn                 // the connection whose answer is lost
	opened chan struct{}
	broke  chan struct{} // closed when the blockade has broken a connection
}

// Hold makes a blockade that stops writes, or answers, after pass of them have gone through.
func (p *Path) Hold(kind Blocked, pass int) *Blockade {
	return p.hold(&Blockade{kind: kind, pass: pass})
}

// BreakAt breaks the connection of the first write that at accepts, without a stop: in place of that write with
// LostWrite, in place of its answer with LostAnswer. The channel is closed when it has.
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

// Open lets what is held up go on, and holds nothing up any more.
func (g *Blockade) Open() {
	g.path.mu.Lock()
	defer g.path.mu.Unlock()
	if g.path.blockade == g {
		g.path.blockade = nil
	}
	close(g.opened)
}

// Catches reports whether something is held up within that time. It waits in short steps: if the whole process stops
// meanwhile, only one step is lost.
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

// stops reports whether the blockade stops a write, or an answer, of which it knows no bytes. The caller holds the
// mutex, also for tell.
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

// deadline is when reads or writes that wait at a blockade end, like those of a socket, in Unix nanoseconds; 0 means
// never.
type deadline struct{ atomic.Int64 }

func (d *deadline) set(at time.Time) {
	if at.IsZero() {
		d.Store(0)
	} else {
		d.Store(at.UnixNano())
	}
}

// wait returns when the blockade is open. It returns an error if the deadline comes before, or the connection is gone.
func (d *deadline) wait(g *Blockade, gone <-chan struct{}) error {
	look := time.NewTicker(time.Millisecond) // the deadline may be moved
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
