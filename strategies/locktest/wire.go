package locktest

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/intercept"
)

// wire is an instance's side of all connections that are made from its Nodes' Options: a test
// sees when they carry something and can hold that up. It does not see connections that a
// strategy dials in another way, and tests those less strictly.
type wire struct {
	mu      sync.Mutex
	dialing int
	moved   time.Time // when bytes last went either way
	wrote   time.Time // when bytes last went to a server
	gate    *gate
	late    *keptBack
	open    int    // connections
	recent  []byte // what was written last
}

// mostRecent is how much of what was written is kept.
const mostRecent = 1 << 16

// gate holds up one write, all dials, or all answers.
type gate struct {
	wire    *wire
	dials   bool
	answers bool
	loses   bool  // holds up one answer, and then loses it
	drops   bool  // loses the write that it holds up
	on      *conn // the connection whose answer is lost
	pass    int   // writes, or answers, that go through before
	caught  chan struct{}
	opened  chan struct{}
}

// options returns options that dial through the wire.
func (w *wire) options(o redis.UniversalOptions) *redis.UniversalOptions {
	o.Addrs = slices.Clip(o.Addrs) // go-redis appends the nodes that it learns of; each client has its own
	dial := o.Dialer
	if dial == nil {
		simple := o.Simple()
		if simple.DialTimeout == 0 {
			simple.DialTimeout = 5 * time.Second
		}
		dial = redis.NewDialer(simple)
	}
	o.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		g := w.toDial()
		defer w.dialled()
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
		w.opened(1)
		return w.watch(c), nil
	}
	return &o
}

// holdWrite makes a gate for the write that comes after pass others.
func (w *wire) holdWrite(pass int) *gate { return w.close(&gate{pass: pass}) }

// holdDials makes a gate for all dials.
func (w *wire) holdDials() *gate { return w.close(&gate{dials: true}) }

func (w *wire) close(g *gate) *gate {
	g.wire, g.caught, g.opened = w, make(chan struct{}), make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gate = g
	return g
}

// soon is how long the tests wait for what a strategy may never do.
const soon = 250 * time.Millisecond

// catches says whether something is held up within that time. It waits in short steps: if the
// whole process stops meanwhile, only one step is lost.
func (g *gate) catches(within time.Duration) bool {
	const wait = 5 * time.Millisecond
	for range within / wait {
		select {
		case <-g.caught:
			return true
		case <-time.After(wait):
		}
	}
	return false
}

// open lets what is held up go on, and holds nothing up any more.
func (g *gate) open() {
	g.wire.mu.Lock()
	defer g.wire.mu.Unlock()
	if g.wire.gate == g {
		g.wire.gate = nil
	}
	close(g.opened)
}

// toDial returns the gate that a dial has come to; nil means none.
func (w *wire) toDial() *gate {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dialing++
	g := w.gate
	if g == nil || !g.dials {
		return nil
	}
	tell(g.caught)
	return g
}

// tell closes a channel unless it is closed. The caller holds the mutex.
func tell(caught chan struct{}) {
	select {
	case <-caught:
	default:
		close(caught)
	}
}

func (w *wire) dialled() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dialing--
	w.moved = time.Now()
}

// toWrite returns the gate that a write has come to; nil means none.
func (w *wire) toWrite(c *conn) *gate {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.gate
	if g == nil || g.dials || g.answers || g.on != nil {
		return nil
	}
	if g.pass > 0 {
		g.pass--
		return nil
	}
	if g.loses {
		g.on = c
		return nil
	}
	w.gate = nil // the others go through
	close(g.caught)
	return g
}

// note notes that something moved: that was written, or else something was read.
func (w *wire) note(written []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moved = time.Now()
	if written != nil {
		w.wrote = w.moved
		w.recent = append(w.recent, written...)
		w.recent = w.recent[max(0, len(w.recent)-mostRecent):]
	}
}

// lastWrite is the zero time when nothing was ever written.
func (w *wire) lastWrite() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wrote
}

// sent returns the last of what was written, as far as it is kept.
func (w *wire) sent() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.recent)
}

// last is when something last moved, and whether something is being dialled.
func (w *wire) last() (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.moved, w.dialing > 0
}

// opened adds n to the number of open connections.
func (w *wire) opened(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open += n
}

// connections returns the number of open connections.
func (w *wire) connections() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open
}

// conn is a connection on the wire.
type conn struct {
	net.Conn        // as it was dialled
	kept     []byte // what arrives late
	broken   bool   // as the client sees it
	closed   bool   // by the client
}

func (w *wire) watch(dialled net.Conn) net.Conn {
	c := &conn{Conn: dialled}
	return intercept.Conn(dialled, intercept.Hooks{
		Write: func(b []byte, write func([]byte) (int, error)) (int, error) {
			if g := w.toWrite(c); g != nil {
				<-g.opened
				if g.drops {
					w.breaks(c)
					_ = dialled.Close()
					return 0, errBroken
				}
			}
			w.note(b)
			if kept, err := w.keeps(c, b); kept {
				return len(b), err
			}
			return write(b)
		},
		Read: func(b []byte, read func([]byte) (int, error)) (int, error) {
			if w.isBroken(c) {
				return 0, errBroken
			}
			n, err := read(b)
			if g := w.toRead(c, n); g != nil {
				<-g.opened
				if g.loses {
					w.breaks(c)
					_ = dialled.Close()
				}
			}
			w.note(nil)
			if w.isBroken(c) {
				return 0, errBroken
			}
			return n, err
		},
		// A connection with bytes that are to arrive late stays open.
		Close: func(hangUp func() error) error {
			if w.closes(c) {
				return dialled.SetReadDeadline(time.Unix(1, 0))
			}
			return hangUp()
		},
	})
}
