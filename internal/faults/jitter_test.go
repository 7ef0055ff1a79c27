package faults_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/faults"
	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/workloads"
	"github.com/lockbench/lockbench/workloads/spec"
)

// detour is a way through the proxies of one fault.
func detour(t *testing.T, text string) (spec.Fault, *faults.Injector, func(context.Context, string, string) (net.Conn, error)) {
	t.Helper()
	fault, err := spec.ParseFault(text)
	if err != nil {
		t.Fatal(err)
	}
	injector := faults.New(nil, []spec.Fault{fault})
	t.Cleanup(injector.Close)
	return fault, injector, injector.Detour(0)(func(ctx context.Context, network, address string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	})
}

// trips are the shortest and the longest of many times there and back while a fault
// of the network lasts.
func trips(t *testing.T, server *redistest.Server, text string) (shortest, longest time.Duration) {
	t.Helper()
	fault, injector, dial := detour(t, text)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Dialer: dial, MaxRetries: -1, PoolSize: 1})
	defer client.Close()
	ping := func() time.Duration {
		began := time.Now()
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	ping() // dials
	blow, err := injector.Prepare(t.Context(), fault, workloads.Scene{})
	if err != nil {
		t.Fatal(err)
	}
	if err := blow.Hit(t.Context()); err != nil {
		t.Fatal(err)
	}
	shortest = time.Hour
	for range 40 {
		took := ping()
		shortest, longest = min(shortest, took), max(longest, took)
	}
	if err := blow.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	return shortest, longest
}

// With jitter, what is sent takes up to that much less than the delay, or more. How
// long a busy machine takes on top of either has no bound, so that only "less" tells.
func TestJitterGoesBothWays(t *testing.T) {
	t.Parallel()
	const there, back = 10 * time.Millisecond, 10 * time.Millisecond
	server := redistest.Start(t)
	if shortest, _ := trips(t, server, "latency:delay=10ms"); shortest < there+back {
		t.Errorf("a PING took %v, and %v each way without jitter", shortest, there)
	}
	shortest, longest := trips(t, server, "latency:delay=10ms,jitter=8ms")
	t.Logf("with jitter a PING took %v to %v", shortest, longest)
	if shortest >= there+back {
		t.Errorf("none of the PINGs took less than %v: the shortest %v", there+back, shortest)
	}
	if shortest < there+back-16*time.Millisecond {
		t.Errorf("a PING took %v, less than the jitter can take off", shortest)
	}
	if longest <= there+back {
		t.Errorf("none of the PINGs took more than %v: the longest %v", there+back, longest)
	}
}
