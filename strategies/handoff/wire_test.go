package handoff_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// wire is a process's path to Redis that reads the data on it: it records and replaces words, and breaks a connection
// at a word.
type wire struct {
	netfault.Path

	mu  sync.Mutex
	log []byte // the data written since the last stall
	// instead maps written words to their replacements, and replaced counts them.
	instead  map[string]string
	replaced map[string]int
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

// open opens a process that is not connected yet.
func (w *wire) open(t *testing.T, server *redistest.Server, variant string, ttl time.Duration) trial.Process {
	t.Helper()
	return open(t, &redis.UniversalOptions{Addrs: []string{server.Addr}, Dialer: w.dial}, variant, ttl)
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := w.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return netfault.Conn(c, netfault.Hooks{Write: func(b []byte, write func([]byte) (int, error)) (int, error) {
		if _, err := write(w.written(b)); err != nil {
			return 0, err
		}
		return len(b), nil
	}}), nil
}

// written records the written data and returns its replacement.
func (w *wire) written(b []byte) (words []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, b...)
	for word, other := range w.instead {
		w.replaced[word] += bytes.Count(b, []byte(word))
		b = bytes.ReplaceAll(b, []byte(word), []byte(other))
	}
	return b
}

// command is the text of a command on the wire, and script the text of a script's call.
func command(name string) []byte { return fmt.Appendf(nil, "$%d\r\n%s\r\n", len(name), name) }

// sent reports whether words were written since the last call of stall.
func (w *wire) sent(words []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Contains(w.log, words)
}

// times counts the words written since the last call of stall.
func (w *wire) times(words []byte) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Count(w.log, words)
}

// stall holds back the data that Redis sends, and flow releases it.
func (w *wire) stall() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = nil
	w.Stall(true)
}

func (w *wire) flow() { w.Stall(false) }

// breaks makes a connection break at the given words: before Redis has received them, or after it has answered. The
// returned channel is closed when the connection has broken.
func (w *wire) breaks(at []byte, answered bool) (happened <-chan struct{}) {
	kind := netfault.LostWrite
	if answered {
		kind = netfault.LostAnswer
	}
	return w.BreakAt(kind, func(written []byte) bool { return bytes.Contains(written, at) })
}
