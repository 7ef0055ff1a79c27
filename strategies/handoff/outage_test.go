package handoff_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// An outage is told to whoever asks, waits or extends after two seconds of trying, however many
// tries these are; whoever waits finds it out by a look, which is due a second later at most.
func TestAnOutageIsTold(t *testing.T) {
	t.Parallel()
	const soon = 5 * time.Second // a busy machine has two for itself
	trial.Calm(t, func(int) string {
		if last := outage(t); last > soon {
			return fmt.Sprintf("it was told after %v", last)
		}
		return ""
	})
}

// outage returns when the last was told that Redis does not answer.
func outage(t *testing.T) (last time.Duration) {
	server := redistest.Start(t)
	h, p := trial.Start(t, server, "handoff", time.Hour), trial.Start(t, server, "handoff", time.Hour)
	q := newQueue(t, server)
	lease := acquire(t, h)
	q.join("waiter", p)
	server.Pause()
	began := time.Now()
	told := map[string]func(ctx context.Context) error{
		"acquire": func(ctx context.Context) error { _, err := p.Locker.Acquire(ctx, "free"); return err },
		"try":     func(ctx context.Context) error { _, err := locker(p).TryAcquire(ctx, "another"); return err },
		"wait":    func(context.Context) error { return q.any().err },
		"extend":  func(ctx context.Context) error { return lease.Extend(ctx, 2*time.Hour) },
	}
	var all sync.WaitGroup
	for what, do := range told {
		all.Go(func() {
			err := do(context.Background())
			if err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, strategies.ErrHeld) {
				t.Errorf("%s: a Redis that does not answer is told as %v", what, err)
			}
		})
	}
	all.Wait()
	last = time.Since(began)
	server.Resume()
	trial.Release(t, lease)
	q.nothingLeft(p, h)
	return last
}

// A server that does not know a script even by its source is told so once, not for two seconds.
func TestScriptThatIsNeverKnown(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	options := &redis.UniversalOptions{Addrs: []string{server.Addr}, Dialer: dialForgetful}
	client := redis.NewUniversalClient(options)
	t.Cleanup(func() { _ = client.Close() })
	nodes := []goredis.Node{{Client: client, Options: options}}
	p := trial.Process{Config: goredis.Config{Nodes: nodes, Prefix: "trial:", TTL: time.Hour}}
	l, err := handoff.Open(p.Config, handoff.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	p.Locker = l
	t.Cleanup(func() { _ = l.Close() })
	lease := acquire(t, p) // without a script
	calls := locktest.Calls(t, server.Client(t), func() {
		if err := lease.Release(t.Context()); err == nil || !strings.Contains(err.Error(), "NOSCRIPT") {
			t.Errorf("a release by a script that is never known returned %v", err)
		}
	})
	if calls["evalsha"] != 2 { // the second was an EVAL
		t.Errorf("it was sent %d times, want by its hash and by its source", calls["evalsha"])
	}
}

// forgetful is a proxy that has Redis look for the source of a script as if that were its hash.
type forgetful struct{ net.Conn }

func dialForgetful(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	return forgetful{c}, err
}

func (c forgetful) Write(b []byte) (int, error) {
	_, err := c.Conn.Write(bytes.ReplaceAll(b, command("eval"), command("evalsha")))
	return len(b), err
}
