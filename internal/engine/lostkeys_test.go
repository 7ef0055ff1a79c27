package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/workloads"
)

// A server that loses the keys of locks admits a second holder. The run is then invalid, reports the server as the
// cause, and reports no broken claim of the lock.
func TestServerThatLosesKeys(t *testing.T) {
	type client = redis.UniversalClient
	for _, test := range []struct {
		name, says string
		lose       func(*testing.T, *redistest.Server, client)
	}{
		{"FLUSHALL", "another client called FLUSHALL 1 time", func(t *testing.T, _ *redistest.Server, c client) {
			done(t, c.FlushAll(t.Context()).Err())
		}},
		{"FLUSHDB in a transaction", "called FLUSHDB", func(t *testing.T, _ *redistest.Server, c client) {
			_, err := c.TxPipelined(t.Context(), func(p redis.Pipeliner) error { return p.FlushDB(t.Context()).Err() })
			done(t, err)
		}},
		{"SWAPDB", "called SWAPDB", func(t *testing.T, _ *redistest.Server, c client) {
			done(t, c.Do(t.Context(), "swapdb", 0, 1).Err())
		}},
		{"eviction", "the server evicted", func(t *testing.T, _ *redistest.Server, c client) {
			done(t, c.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-random").Err())
			poll.Until(t, "a write of a client evicts", func() bool { // needs a holder, whose key it evicts
				done(t, c.ConfigSet(t.Context(), "maxmemory", "1").Err())
				time.Sleep(20 * time.Millisecond)
				done(t, c.ConfigSet(t.Context(), "maxmemory", "0").Err())
				return !strings.Contains(c.Info(t.Context(), "stats").Val(), "evicted_keys:0")
			})
		}},
		{"restart", "the server restarted or was replaced 1 time", func(t *testing.T, s *redistest.Server, _ client) {
			s.Restart(t)
		}},
		{"failover", "a failover changed the role", func(t *testing.T, _ *redistest.Server, c client) {
			host, port, _ := strings.Cut(redistest.Start(t).Addr, ":")
			done(t, c.ReplicaOf(t.Context(), host, port).Err())
			for !strings.Contains(c.Info(t.Context(), "replication").Val(), "master_link_status:up") {
				time.Sleep(10 * time.Millisecond)
			}
			done(t, c.ReplicaOf(t.Context(), "no", "one").Err())
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			client := server.Client(t)
			j := job(t, server, "spin", func(w *workloads.Spec) {
				w.Clients, w.Instances, w.Warmup = 8, 2, 0
				w.Hold, w.Duration = workloads.Fixed(20*time.Millisecond), workloads.Duration(time.Second)
			})
			lost := make(chan struct{})
			j.Phase = func(phase string) {
				if phase != "measure" {
					return
				}
				go func() {
					defer close(lost)
					time.Sleep(100 * time.Millisecond)
					test.lose(t, server, client)
				}()
			}
			run, err := j.Run(context.WithoutCancel(t.Context()))
			<-lost
			if run == nil {
				t.Fatal(err)
			}
			t.Logf("%d overlaps, broken %v, invalid %q", run.Safety.Overlaps, run.Safety.Broken, run.Invalid)
			named := strings.Contains(run.Invalid.String(), test.says)
			if !named || len(run.Safety.Broken) > 0 {
				t.Errorf("broken %q, invalid %q: want %q", run.Safety.Broken, run.Invalid, test.says)
			}
		})
	}
}

func done(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
