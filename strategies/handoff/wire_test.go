package handoff_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// wire is a process's path to Redis, which knows the words on it: it notices and replaces them, and breaks a
// connection at them.
type wire struct {
	netfault.Path

	mu  sync.Mutex
	log []byte // what was written since the last stall
	cut *cut
	// instead has other words for words that are written, and replaced counts them.
	instead  map[string]string
	replaced map[string]int
}

// cut is a connection that breaks at the write that has those words in it: before Redis has it, or when it has
// answered.
type cut struct {
	at       []byte
	answered bool
	happened chan struct{}
}

// start opens a process on the wire, ready for use.
func (w *wire) start(t *testing.T, server *redistest.Server, variant string, ttl time.Duration) trial.Process {
	t.Helper()
	p := w.open(t, server, variant, ttl)
	if err := locker(p).Prepare(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return p
}

// open opens one that is not connected yet.
func (w *wire) open(t *testing.T, server *redistest.Server, variant string, ttl time.Duration) trial.Process {
	t.Helper()
	return open(t, &redis.UniversalOptions{Addrs: []string{server.Addr}, Dialer: w.dial}, variant, ttl)
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := w.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	var deaf atomic.Pointer[cut] // at the next answer
	end := func(at *cut) { _ = c.Close(); close(at.happened) }
	return netfault.Conn(c, netfault.Hooks{
		Write: func(b []byte, write func([]byte) (int, error)) (int, error) {
			words, at := w.written(b)
			if at != nil && !at.answered {
				end(at)
				return len(b), nil
			}
			if at != nil {
				deaf.Store(at)
			}
			_, err := write(words)
			return len(b), err
		},
		Read: func(b []byte, read func([]byte) (int, error)) (int, error) {
			n, err := read(b)
			if err != nil {
				return n, err
			}
			if at := deaf.Swap(nil); at != nil {
				end(at)
				return 0, net.ErrClosed
			}
			return n, nil
		},
	}), nil
}

// written notes what is written, and returns what is written instead, and the cut at it; nil for none.
func (w *wire) written(b []byte) (words []byte, at *cut) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, b...)
	if w.cut != nil && bytes.Contains(b, w.cut.at) {
		at, w.cut = w.cut, nil
	}
	for word, other := range w.instead {
		w.replaced[word] += bytes.Count(b, []byte(word))
		b = bytes.ReplaceAll(b, []byte(word), []byte(other))
	}
	return b, at
}

// command is how one without a script looks on the wire, and script how one looks.
func command(name string) []byte { return fmt.Appendf(nil, "$%d\r\n%s\r\n", len(name), name) }

// sent says whether words were written since the last call of stall.
func (w *wire) sent(words []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Contains(w.log, words)
}

// stall holds up what Redis sends, and flow lets it come.
func (w *wire) stall() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = nil
	w.Stall(true)
}

func (w *wire) flow() { w.Stall(false) }

// breaks has a connection break at those words. The channel is closed when it has.
func (w *wire) breaks(at []byte, answered bool) (happened chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = &cut{at, answered, make(chan struct{})}
	return w.cut.happened
}
