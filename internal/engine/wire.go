package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/lockbench/lockbench/internal/intercept"
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
	going  chan struct{}         // closed unless it is frozen
	conns  map[net.Conn]struct{} // as they were dialled
	limit  *commandLimit         // nil without

	commands func(written []byte) []string
}

// newWire knows what goes over it by commands, see store.Protocol.
func newWire(commands func(written []byte) []string) *wire {
	w := &wire{commands: commands, going: make(chan struct{}), conns: map[net.Conn]struct{}{}}
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
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.dead {
			_ = conn.Close()
			return nil, errDead
		}
		w.conns[conn] = struct{}{}
		return w.conn(conn), nil
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
	for conn := range conns {
		_ = conn.Close()
	}
}

// conn is one of its connections: what has come a stopped process learns only later.
func (w *wire) conn(dialled net.Conn) net.Conn {
	closed, once := make(chan struct{}), new(sync.Once) // by its owner
	return intercept.Conn(dialled, intercept.Hooks{
		Read: func(b []byte, read func([]byte) (int, error)) (int, error) {
			n, err := read(b)
			if dead := w.await(closed); dead != nil {
				return 0, dead
			}
			return n, err
		},
		Write: func(b []byte, write func([]byte) (int, error)) (int, error) {
			if err := w.await(closed); err != nil {
				return 0, err
			}
			if w.limitReached(b) {
				w.cut()
				return 0, errDead
			}
			return write(b)
		},
		Close: func(hangUp func() error) error {
			once.Do(func() { close(closed) })
			w.mu.Lock()
			delete(w.conns, dialled)
			w.mu.Unlock()
			return hangUp()
		},
	})
}

// commandLimit is reached before more different commands have been sent than it lets through.
type commandLimit struct {
	commands  int
	seen      []string
	onReached func() // called once, before the wire is cut
}

// arm has the process die when it is about to send one more different command.
func (w *wire) arm(commands int, onReached func()) {
	w.mu.Lock()
	w.limit = &commandLimit{commands: commands, onReached: onReached}
	w.mu.Unlock()
}

// limitReached says whether what is about to be written is one command too many.
func (w *wire) limitReached(b []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.limit == nil || w.dead {
		return false
	}
	for _, name := range w.commands(b) {
		if slices.Contains(w.limit.seen, name) {
			continue
		}
		if len(w.limit.seen) == w.limit.commands {
			w.limit.onReached()
			w.limit = nil
			return true
		}
		w.limit.seen = append(w.limit.seen, name)
	}
	return false
}
