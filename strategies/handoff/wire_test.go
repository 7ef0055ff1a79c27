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

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// wire is a process's way to Redis, on which answers are late, and commands or their
// answers get lost.
type wire struct {
	mu     sync.Mutex
	log    []byte        // what was sent
	stalls chan struct{} // what Redis sends waits until it is closed; nil if nothing waits
	cut    *cut          // the next
	loss   *cut          // the next of what Redis sends
	// instead has other words, as long, for words that are sent, and replaced counts them.
	instead  map[string]string
	replaced map[string]int
}

// cut is a connection that breaks: at the write that has those words in it, before Redis
// has it or when it has answered.
type cut struct {
	at       []byte
	carried  bool
	happened chan struct{}
}

// start opens a process on the wire, by a client with go-redis's defaults, which retries.
func (w *wire) start(t *testing.T, server *redistest.Server, variant string, ttl time.Duration) trial.Process {
	t.Helper()
	options := &redis.UniversalOptions{Addrs: []string{server.Addr}, Dialer: w.dial}
	client := redis.NewUniversalClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return trial.StartOn(t, []goredis.Node{{Client: client, Options: options}}, variant, ttl)
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, wire: w}, nil
}

// command is how one without a script looks on the wire, and script how one looks.
func command(name string) []byte { return fmt.Appendf(nil, "$%d\r\n%s\r\n", len(name), name) }

// sent says whether words were sent since the last call of stall.
func (w *wire) sent(words []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Contains(w.log, words)
}

// stall has what Redis sends wait.
func (w *wire) stall() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stalls, w.log = make(chan struct{}), nil
}

// flow lets it come.
func (w *wire) flow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.stalls)
	w.stalls = nil
}

// breaks has a connection break at those words. The channel is closed when it has.
func (w *wire) breaks(at []byte, carried bool) (happened chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = &cut{at, carried, make(chan struct{})}
	return w.cut.happened
}

// loses has a connection break when Redis has sent those words, which are lost with it.
func (w *wire) loses(at []byte) (happened chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loss = &cut{at, true, make(chan struct{})}
	return w.loss.happened
}

type conn struct {
	net.Conn
	wire *wire

	mu   sync.Mutex
	deaf *cut // what is read from now on is lost
}

func (c *conn) Write(b []byte) (int, error) {
	w := c.wire
	w.mu.Lock()
	w.log = append(w.log, b...)
	for word, other := range w.instead {
		w.replaced[word] += bytes.Count(b, []byte(word))
		b = bytes.ReplaceAll(b, []byte(word), []byte(other))
	}
	broken := w.cut
	if broken != nil && bytes.Contains(b, broken.at) {
		w.cut = nil
	} else {
		broken = nil
	}
	w.mu.Unlock()
	switch {
	case broken == nil:
		return c.Conn.Write(b)
	case !broken.carried:
		_ = c.Conn.Close()
		close(broken.happened)
		return len(b), nil
	}
	c.mu.Lock()
	c.deaf = broken
	c.mu.Unlock()
	return c.Conn.Write(b)
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.wire.mu.Lock()
	stalls := c.wire.stalls
	if c.wire.loss != nil && bytes.Contains(b[:max(n, 0)], c.wire.loss.at) {
		_ = c.Conn.Close()
		close(c.wire.loss.happened)
		c.wire.loss = nil
		n, err = 0, net.ErrClosed
	}
	c.wire.mu.Unlock()
	if stalls != nil {
		<-stalls
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deaf != nil && err == nil {
		_ = c.Conn.Close()
		close(c.deaf.happened)
		c.deaf = nil
		return 0, net.ErrClosed
	}
	return n, err
}
