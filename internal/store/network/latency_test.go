package network_test

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/store/network"
	"github.com/lockbench/lockbench/internal/testkit/drive"
)

// detour returns a dialer whose connections pass through proxies. hit begins the faults that texts describe, and end
// ends them.
func detour(t *testing.T, texts ...string) (
	dial func(context.Context, string, string) (net.Conn, error), hit, end func(t *testing.T),
) {
	t.Helper()
	faults := drive.Faults(t, texts...)
	injector := network.New(faults)
	t.Cleanup(injector.Close)
	var hits, ends []func(context.Context) error
	for _, fault := range faults {
		action, err := injector.Prepare(fault)
		if err != nil {
			t.Fatal(err)
		}
		hits, ends = append(hits, action.Hit), append(ends, action.End)
	}
	all := func(do []func(context.Context) error) func(t *testing.T) {
		return func(t *testing.T) {
			t.Helper()
			for _, one := range do {
				if err := one(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return injector.Detour(0)(new(net.Dialer).DialContext), all(hits), all(ends)
}

// trip sends requests to server one after the other while the fault that text describes lasts. It returns the shortest
// and the longest round trip. It stops when enough returns true for these two, or after 20 s.
func trip(
	t *testing.T, server, text string, enough func(shortest, longest time.Duration) bool,
) (shortest, longest time.Duration) {
	t.Helper()
	dial, hit, end := detour(t, text)
	conn, err := dial(t.Context(), "tcp", server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ping := func() time.Duration {
		began := time.Now()
		_, err := conn.Write([]byte("?"))
		if err == nil {
			_, err = io.ReadFull(conn, make([]byte, 1))
		}
		if err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	ping() // the proxy has dialled
	hit(t)
	shortest = time.Hour
	for began := time.Now(); time.Since(began) < 20*time.Second && !enough(shortest, longest); {
		took := ping()
		shortest, longest = min(shortest, took), max(longest, took)
	}
	end(t)
	return shortest, longest
}

// Each direction is delayed by 100 ms, so no trip may be shorter than 200 ms. With jitter, a trip may be up to 180 ms
// shorter or longer. A busy machine can prolong any trip, so the test sends until it has seen a trip below and one
// above 200 ms.
func TestJitterInBothDirections(t *testing.T) {
	t.Parallel()
	const both, jitter = 2 * 100 * time.Millisecond, 2 * 90 * time.Millisecond
	const early = time.Millisecond // pause.Sleepers are right on average, and end as often early as late
	server := drive.Serve(t, echo)
	few := 0
	shortest, _ := trip(t, server, "latency:delay=100ms", func(_, _ time.Duration) bool { few++; return few > 5 })
	if shortest < both-early {
		t.Errorf("a trip took %v, and %v both ways without jitter", shortest, both)
	}
	shortest, longest := trip(t, server, "latency:delay=100ms,jitter=90ms", func(shortest, longest time.Duration) bool {
		return shortest < both && longest > both
	})
	if shortest >= both || shortest < both-jitter || longest <= both {
		t.Errorf("with jitter a trip took %v to %v, and %v without", shortest, longest, both)
	}
}

// TestDistance sends 100 requests through a delay without waiting for the replies. All replies must have arrived long
// before 100 delays have passed. The second case adds a bandwidth fault, which begins first.
func TestDistance(t *testing.T) {
	t.Parallel()
	const oneWay, trips = 20 * time.Millisecond, 100
	server := drive.Serve(t, echo)
	for name, texts := range map[string][]string{
		"latency":           {"latency:at=0s,delay=20ms"},
		"after a bandwidth": {"bandwidth:at=0s,rate=100000", "latency:at=0s,delay=20ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dial, hit, _ := detour(t, texts...)
			hit(t)
			conn, err := dial(t.Context(), "tcp", server)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			begin := time.Now()
			go func() {
				for range trips {
					_, _ = conn.Write([]byte("ping\r\n")) // a failure shows in the reader
					time.Sleep(100 * time.Microsecond)    // so that each is a segment
				}
			}()
			if _, err := io.ReadFull(conn, make([]byte, trips*len("ping\r\n"))); err != nil {
				t.Fatal(err)
			}
			if took, inTurn := time.Since(begin), trips*oneWay; took > inTurn/2 {
				t.Errorf("%d trips took %v; had they waited for each other it would have been %v", trips, took, inTurn)
			}
		})
	}
}
