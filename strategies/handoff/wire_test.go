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

// wire is a network path from a process to Redis. It records what the process writes, can replace words in it, and can
// break the connection when the process writes a given text.
type wire struct {
	netfault.Path

	mu  sync.Mutex
	log []byte // the data written since the last stall
	// instead maps each word to its replacement. replaced counts the replacements of each word.
	instead  map[string]string
	replaced map[string]int
}

// start starts a process whose connections go through the wire, and calls Prepare, which connects it to Redis.
func (w *wire) start(t *testing.T, server *redistest.Server, variant string, ttl time.Duration) trial.Process {
	t.Helper()
	p := w.open(t, server, variant, ttl)
	if err := locker(p).Prepare(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return p
}

// open starts a process whose connections go through the wire. The process does not connect to Redis before Prepare or
// its first command.
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

// written appends b to the log. It returns b with the words that are keys of instead replaced by their values.
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

// command returns the name as a bulk string of the Redis protocol, as a client writes it.
func command(name string) []byte { return fmt.Appendf(nil, "$%d\r\n%s\r\n", len(name), name) }

// sent reports whether the process has written the text words since the last call of stall.
func (w *wire) sent(words []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Contains(w.log, words)
}

// times returns how often the process has written the text words since the last call of stall.
func (w *wire) times(words []byte) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Count(w.log, words)
}

// stall clears the log, and holds back all replies of Redis until flow is called.
func (w *wire) stall() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = nil
	w.Stall(true)
}

func (w *wire) flow() { w.Stall(false) }

// breaks makes the connection break as soon as the process writes the text at. If answered is false, Redis does not
// receive this write. If answered is true, Redis replies to it, but the reply is lost. happened is closed when the
// connection has broken.
func (w *wire) breaks(at []byte, answered bool) (happened <-chan struct{}) {
	kind := netfault.LostWrite
	if answered {
		kind = netfault.LostAnswer
	}
	return w.BreakAt(kind, func(written []byte) bool { return bytes.Contains(written, at) })
}
