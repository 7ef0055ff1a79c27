package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/store"
)

// errDead is the error that every connection of a crashed process returns.
var errDead = errors.New("the process has crashed")

// wire holds all connections of one simulated process. It stops them while the process is paused and closes them when
// the process dies. Therefore the server gets no commands of the strategy's background goroutines either, such as a
// renewal.
type wire struct {
	open netfault.Conns

	mu     sync.Mutex
	dead   bool
	frozen bool
	going  chan struct{} // closed unless it is frozen
	limit  *commandLimit // nil unless freezeAfter is active

	commands func(written []byte) []string
}

// newWire returns a wire that parses the written bytes with commands, a function of a store.Protocol.
func newWire(commands func(written []byte) []string) *wire {
	w := &wire{commands: commands, going: make(chan struct{})}
	close(w.going)
	return w
}

// through wraps a dialer, so that its connections belong to the process. It is a store.Through.
func (w *wire) through(dial store.Dialer) store.Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if err := w.await(ctx.Done()); err != nil {
			return nil, fmt.Errorf("dial %s: %w", addr, errors.Join(err, ctx.Err()))
		}
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return w.conn(conn)
	}
}

// await waits while the process is paused. It returns an error if the process is dead or if given is closed before the
// process resumes.
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

// freeze pauses the process. Until thaw, its connections send nothing and deliver no received bytes.
func (w *wire) freeze() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop()
}

func (w *wire) stop() {
	if !w.frozen && !w.dead {
		w.frozen, w.going = true, make(chan struct{})
	}
}

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

// cut kills the process. As after SIGKILL, its sockets are closed and it sends nothing more.
func (w *wire) cut() {
	w.mu.Lock()
	w.dead = true
	w.release()
	w.mu.Unlock()
	w.open.Cut(errDead)
}

// conn wraps one connection. A paused process receives the bytes of a read only after thaw.
func (w *wire) conn(dialled net.Conn) (net.Conn, error) {
	closed, once := make(chan struct{}), new(sync.Once) // closed by the connection's owner
	return w.open.Add(dialled, netfault.Hooks{
		Read: func(b []byte, read func([]byte) (int, error)) (int, error) {
			n, err := read(b)
			if dead := w.await(closed); dead != nil {
				return 0, dead
			}
			return n, err
		},
		Write: func(b []byte, write func([]byte) (int, error)) (int, error) {
			w.count(b)
			if err := w.await(closed); err != nil {
				return 0, err
			}
			return write(b)
		},
		Close: func(hangUp func() error) error {
			once.Do(func() { close(closed) })
			return hangUp()
		},
	})
}

// commandLimit is reached when the process has sent the given number of distinct commands and is about to send another
// distinct one.
type commandLimit struct {
	commands int
	seen     []string
	reached  chan struct{} // closed when the limit is reached
}

// freezeAfter makes the process freeze when it has sent the given number of distinct commands, just before it sends
// another distinct one. The returned channel is closed at that instant.
func (w *wire) freezeAfter(commands int) (frozen <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit = &commandLimit{commands: commands, reached: make(chan struct{})}
	return w.limit.reached
}

// disarm cancels freezeAfter and resumes the process.
func (w *wire) disarm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit = nil
	w.release()
}

// count freezes the process if b contains the command that reaches the limit.
func (w *wire) count(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.limit == nil || w.dead {
		return
	}
	for _, name := range w.commands(b) {
		if slices.Contains(w.limit.seen, name) {
			continue
		}
		if len(w.limit.seen) == w.limit.commands {
			w.stop()
			close(w.limit.reached)
			w.limit = nil
			return
		}
		w.limit.seen = append(w.limit.seen, name)
	}
}
