package netfault

// This file defines Blockade, which holds up the traffic of a Path. It also defines the deadlines of reads and writes
// that wait at a blockade.

import (
	"net"
	"os"
	"sync/atomic"
	"time"
)

// Blocked selects the traffic that a Blockade holds up, and whether the blockade then breaks the connection.
type Blocked int

// These are the kinds of traffic that a Blockade can hold up.
const (
	Dials      Blocked = iota // all dials wait
	Write                     // one write waits
	LostWrite                 // one write waits; then its connection breaks and the write is lost
	Answers                   // all replies wait
	LostAnswer                // the reply to one write waits; then its connection breaks and the reply is lost
	Late                      // all writes seem to succeed, but their data is held back until Snap
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

// Hold blocks the traffic that kind selects, after it has let the first `pass` writes or replies through.
func (p *Path) Hold(kind Blocked, pass int) *Blockade {
	return p.hold(&Blockade{kind: kind, pass: pass})
}

// BreakAt breaks the connection on which the client first writes data that the function at accepts. With LostWrite it
// breaks the connection before the data is sent, and with LostAnswer before the client gets the reply. The returned
// channel is closed when the connection is broken.
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

// Catches waits until the blockade holds something up or the time `within` has passed. It reports whether the blockade
// has held something up. It sleeps in short steps, so that a pause of the whole process uses up only one step of the
// time limit.
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

// stops reports whether the blockade holds up a write or, if written is empty, a reply. The callers of stops and
// signalCaught must hold Path.mu.
func (g *Blockade) stops(written []byte) bool {
	if g.at != nil && !g.at(written) {
		return false
	}
	g.pass--
	return g.pass < 0
}

func (g *Blockade) signalCaught() {
	select {
	case <-g.Caught:
	default:
		close(g.Caught)
	}
}

// deadline is the read or write deadline of a connection, in Unix nanoseconds; 0 means none. It also applies to reads
// and writes that wait at a blockade.
type deadline struct{ atomic.Int64 }

func (d *deadline) set(at time.Time) {
	if at.IsZero() {
		d.Store(0)
	} else {
		d.Store(at.UnixNano())
	}
}

// wait waits until the blockade is open. It returns an error if the deadline passes first, or if the connection is
// closed or broken first.
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
