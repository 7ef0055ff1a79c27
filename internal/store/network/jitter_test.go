package network_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/store/network"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/workloads"
)

// detour is a way through the proxies of one fault.
func detour(t *testing.T, text string) (workloads.Fault, *network.Network, func(context.Context, string, string) (net.Conn, error)) {
	t.Helper()
	fault, err := workloads.ParseFault(text)
	if err != nil {
		t.Fatal(err)
	}
	injector := network.New([]workloads.Fault{fault})
	t.Cleanup(injector.Close)
	return fault, injector, injector.Detour(0)(func(ctx context.Context, kind, address string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, kind, address)
	})
}

// trip has one request after another go there and back while a fault of the network
// lasts, until enough says so of the shortest and the longest, for 20 seconds at most.
func trip(t *testing.T, server *redistest.Server, text string, enough func(shortest, longest time.Duration) bool) (shortest, longest time.Duration) {
	t.Helper()
	fault, injector, dial := detour(t, text)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Dialer: dial, MaxRetries: -1, PoolSize: 1, ReadTimeout: time.Minute})
	defer client.Close()
	ping := func() time.Duration {
		began := time.Now()
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	ping() // dials
	action, err := injector.Prepare(fault)
	if err != nil {
		t.Fatal(err)
	}
	if err := action.Hit(t.Context()); err != nil {
		t.Fatal(err)
	}
	shortest = time.Hour
	for began := time.Now(); time.Since(began) < 20*time.Second && !enough(shortest, longest); {
		took := ping()
		shortest, longest = min(shortest, took), max(longest, took)
	}
	if err := action.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	return shortest, longest
}

// With jitter, what is sent takes up to that much less than the delay, or more. How
// long a busy machine takes on top of either has no bound: a short trip is waited for.
func TestJitterGoesBothWays(t *testing.T) {
	t.Parallel()
	const both, jitter = 2 * 100 * time.Millisecond, 2 * 90 * time.Millisecond
	const early = time.Millisecond // pause.Sleepers are right on average, and end as often early as late
	server := redistest.Start(t)
	few := 0
	if shortest, _ := trip(t, server, "latency:delay=100ms", func(_, _ time.Duration) bool { few++; return few > 5 }); shortest < both-early {
		t.Errorf("a PING took %v, and %v both ways without jitter", shortest, both)
	}
	shortest, longest := trip(t, server, "latency:delay=100ms,jitter=90ms", func(shortest, longest time.Duration) bool {
		return shortest < both && longest > both
	})
	t.Logf("with jitter a PING took %v to %v", shortest, longest)
	if shortest >= both {
		t.Errorf("none of the PINGs took less than %v: the shortest %v", both, shortest)
	}
	if shortest < both-jitter {
		t.Errorf("a PING took %v, less than the jitter can take off", shortest)
	}
	if longest <= both {
		t.Errorf("none of the PINGs took more than %v: the longest %v", both, longest)
	}
}
