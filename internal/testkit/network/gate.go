package network

import (
	"errors"
	"time"
)

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

// Hold makes a gate behind which that many writes, or answers, go through.
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
