package redisson_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// lostIn waits until lease is reported as lost, and returns the time between the end of the lease and the report. The
// test fails if this time exceeds most.
func lostIn(t *testing.T, lease strategies.Lease, most time.Duration) time.Duration {
	t.Helper()
	watched, _ := strategies.As[strategies.Watched](lease)
	timed, _ := strategies.As[strategies.Timed](lease)
	lost := watched.Lost()
	select {
	case <-lost:
		return time.Since(timed.ValidUntil())
	case <-time.After(time.Until(timed.ValidUntil()) + most):
		t.Errorf("%v after its end a lease is not reported as lost", most)
		return most
	}
}

// Redis is paused, so no lease can be renewed. Each of 300 leases must be reported as lost when it expires, even if the
// client waits for replies without a limit.
func TestLossIsReportedInTime(t *testing.T) {
	t.Parallel()
	for _, read := range []time.Duration{8 * time.Second, -2} { // the second is without a limit
		for _, variant := range []string{"pubsub", "fair", "fenced"} {
			t.Run(fmt.Sprint(variant, " ", read), func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t)
				p := plain(t, server, read, variant, 1200*time.Millisecond)
				var leases []strategies.Lease
				for n := range 300 { // more than a batch
					leases = append(leases, p.Acquire(t, fmt.Sprint(n)))
				}
				longer, _ := strategies.As[strategies.Extender](leases[0])
				if err := longer.Extend(t.Context(), 2*time.Second); err != nil {
					t.Fatal(err)
				}
				time.Sleep(300 * time.Millisecond) // some renewals are done
				server.Pause()
				defer server.Resume()
				var latest time.Duration
				for _, lease := range slices.Backward(leases) {
					latest = max(latest, lostIn(t, lease, 2500*time.Millisecond))
					if t.Failed() {
						return
					}
				}
				t.Logf("the latest report came %v after a lease's end", latest)
			})
		}
	}
}

// hanging is a hook that makes each pipeline with the given key hang until the context over ends. hung counts these
// pipelines.
type hanging struct {
	key  string
	over context.Context

	mu   sync.Mutex
	hung int
}

func (h *hanging) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *hanging) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h *hanging) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return slices.Contains(cmd.Args(), any(h.key)) }) {
			h.mu.Lock()
			h.hung++
			h.mu.Unlock()
			<-h.over.Done()
		}
		return next(ctx, cmds)
	}
}

func (h *hanging) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hung
}

// The renewal of one batch hangs. The watchdog must still renew the leases of other batches. It must not renew a lease
// of the hanging batch again before the first renewal has ended.
func TestHangingBatchDelaysNoOther(t *testing.T) {
	t.Parallel()
	const ttl = 1500 * time.Millisecond
	over := t.Context()
	server := redistest.Start(t)
	node, hook := server.Node(t), &hanging{key: "trial:hangs", over: over}
	node.Client.AddHook(hook)
	p := trial.StartOn(t, []goredis.Node{node}, "pubsub", ttl)
	hangs := p.Acquire(t, "hangs")
	time.Sleep(ttl / 2) // its batch hangs
	lives := p.Acquire(t, "lives")
	lostIn(t, hangs, ttl)
	time.Sleep(2 * ttl)
	watched, _ := strategies.As[strategies.Watched](lives)
	select {
	case <-watched.Lost():
		t.Error("a lease was lost that another batch should have renewed")
	default:
	}
	if n := hook.count(); n != 1 {
		t.Errorf("%d renewals of a lease were under way", n)
	}
	trial.Release(t, lives)
}

// An Extend by 1 s gets no reply, so it may have shortened a lease of 20 s. The loss must be reported when the shorter
// lease would end.
func TestShortenedLeaseIsReportedInTime(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := plain(t, server, -2, "pubsub", time.Second)
	lease := p.Acquire(t, "key")
	extender, _ := strategies.As[strategies.Extender](lease)
	if err := extender.Extend(t.Context(), 20*time.Second); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1500 * time.Millisecond) // the watchdog has looked, and looks again at the end of the 20 s
	server.Pause()
	defer server.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := extender.Extend(ctx, time.Second); err == nil || !strings.Contains(err.Error(), "no reply") {
		t.Errorf("Extend returned %v", err)
	}
	lostIn(t, lease, 5*time.Second)
}
