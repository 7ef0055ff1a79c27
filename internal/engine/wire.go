package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/lockbench/lockbench/internal/store"
)

// errDead is what a crashed process would hear, could it still hear.
var errDead = errors.New("the process has crashed")

// wire is all that goes between one process and Redis. It stops when the process
// does, and breaks when it dies: whatever the strategy's own goroutines then try,
// renewals and tidying up, does not come through.
type wire struct {
	mu     sync.Mutex
	dead   bool
	frozen bool
	going  chan struct{} // closed unless it is frozen
	conns  map[*wireConn]struct{}
	fuse   *fuse // nil without

	commands func(written []byte) []string
}

// newWire knows what goes over it by commands, see store.Protocol.
func newWire(commands func(written []byte) []string) *wire {
	w := &wire{commands: commands, going: make(chan struct{}), conns: map[*wireConn]struct{}{}}
	close(w.going)
	return w
}

// through is a store.Through.
func (w *wire) through(dial store.Dialer) store.Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if err := w.await(ctx.Done()); err != nil {
			return nil, fmt.Errorf("dial %s: %w", addr, errors.Join(err, ctx.Err()))
		}
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		c := &wireConn{Conn: conn, wire: w, closed: make(chan struct{})}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.dead {
			_ = conn.Close()
			return nil, errDead
		}
		w.conns[c] = struct{}{}
		return c, nil
	}
}

// await returns once the process runs, or with an error when it never will again,
// or given has been closed.
func (w *wire) await(given <-chan struct{}) error {
	w.mu.Lock()
	going, dead := w.going, w.dead
	w.mu.Unlock()
	if dead {
		return errDead
	}
	select {
	case <-going:
		return nil
	default:
	}
	select {
	case <-going:
		return w.await(given)
	case <-given:
		return net.ErrClosed
	}
}

// freeze stops the process.
func (w *wire) freeze() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.frozen && !w.dead {
		w.frozen, w.going = true, make(chan struct{})
	}
}

// thaw lets it go on.
func (w *wire) thaw() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.release()
}

func (w *wire) release() {
	if w.frozen {
		w.frozen = false
		close(w.going)
	}
}

// cut ends the process, as the kernel does with one that is killed: its sockets
// are closed, and that is all that anybody hears of it.
func (w *wire) cut() {
	w.mu.Lock()
	w.dead = true
	w.release()
	conns := w.conns
	w.conns = nil
	w.mu.Unlock()
	for c := range conns {
		_ = c.Conn.Close()
	}
}

// wireConn is one of its connections.
type wireConn struct {
	net.Conn
	wire *wire
	once sync.Once
	// closed by its owner.
	closed chan struct{}
}

// Read gives what came, though a stopped process learns of it only later.
func (c *wireConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if dead := c.wire.await(c.closed); dead != nil {
		return 0, dead
	}
	return n, err
}

func (c *wireConn) Write(b []byte) (int, error) {
	if err := c.wire.await(c.closed); err != nil {
		return 0, err
	}
	if c.wire.blown(b) {
		c.wire.cut()
		return 0, errDead
	}
	return c.Conn.Write(b)
}

func (c *wireConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	c.wire.mu.Lock()
	delete(c.wire.conns, c)
	c.wire.mu.Unlock()
	return c.Conn.Close()
}

// fuse blows before more different commands have been sent than it lets through.
type fuse struct {
	commands int
	seen     []string
	onBlow   func() // called once, before the wire is cut
}

// arm has the process die when it is about to send one more different command.
func (w *wire) arm(commands int, onBlow func()) {
	w.mu.Lock()
	w.fuse = &fuse{commands: commands, onBlow: onBlow}
	w.mu.Unlock()
}

// blown says whether what is about to be written is one command too many.
func (w *wire) blown(b []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fuse == nil || w.dead {
		return false
	}
	for _, name := range w.commands(b) {
		if slices.Contains(w.fuse.seen, name) {
			continue
		}
		if len(w.fuse.seen) == w.fuse.commands {
			w.fuse.onBlow()
			w.fuse = nil
			return true
		}
		w.fuse.seen = append(w.fuse.seen, name)
	}
	return false
}
