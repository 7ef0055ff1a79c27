package disturb_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/internal/store/redis/disturb"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/results"
	_ "github.com/lockbench/lockbench/strategies/all"
	"github.com/lockbench/lockbench/workloads"
)

func TestMain(m *testing.M) {
	servers.Quiet()
	// After a server has died go-redis looks once a second whether it is back, and
	// notices only then that its pool has been closed.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// somebodys is a key that looks like one of the run's.
const somebodys = "app:{e5700000:1:0}"

// marked puts a key with a TTL on all nodes that take it, or says on how many it is.
func marked(t *testing.T, server *servers.Server, set bool) int {
	t.Helper()
	n := 0
	for place := range server.Count() {
		_ = server.Ask(t.Context(), place, func(ctx context.Context, node redis.UniversalClient) error {
			if set {
				return node.Set(ctx, somebodys, 1, time.Hour).Err() // replicas refuse it, and have it of the primary
			}
			n += int(node.Exists(ctx, somebodys).Val())
			return nil
		})
	}
	return n
}

// calls counts a command on the first node.
func calls(t *testing.T, server *servers.Server, command string) bool {
	t.Helper()
	var stats string
	err := server.Ask(t.Context(), 0, func(ctx context.Context, node redis.UniversalClient) error {
		var err error
		stats, err = node.Info(ctx, "commandstats").Result()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(stats, "cmdstat_"+command+":")
}

func halted(t *testing.T, s results.Injection) {
	t.Helper()
	// How long the machine takes to begin and to end it is part of it, but kept nobody from the lock.
	if !s.Halts || s.LastedNS < int64(200*time.Millisecond) || *s.RecoveryNS < s.LastedNS || s.Stall.NS < int64(100*time.Millisecond) {
		t.Errorf("strike %+v", s)
	}
}

func went(t *testing.T, s results.Injection) {
	t.Helper()
	if s.Halts || s.Overlaps > 0 {
		t.Errorf("strike %+v", s)
	}
}

func overlapped(t *testing.T, s results.Injection, run *outcome) {
	t.Helper()
	if s.Overlaps == 0 || s.OverlapNS == 0 || !slices.ContainsFunc(run.Safety.Broken, func(b string) bool { return strings.HasPrefix(b, "exclusion") }) {
		t.Errorf("strike %+v, recovered after %v, broken %v, errors %v", s, time.Duration(*s.RecoveryNS), run.Safety.Broken, run.Errors)
	}
}

func TestEveryFaultOfServersStrikes(t *testing.T) {
	t.Parallel()
	together(t, []experiment{
		{"spin", "", "kill:at=100ms,for=200ms", brief, func(t *testing.T, s results.Injection, _ *outcome, server *servers.Server) {
			halted(t, s)
			if marked(t, server, false) > 0 {
				t.Error("it has come back with its data")
			}
		}},
		{"pubsub", "", "kill:at=100ms,for=200ms,data=keep", brief, func(t *testing.T, s results.Injection, _ *outcome, server *servers.Server) {
			halted(t, s)
			if marked(t, server, false) == 0 {
				t.Error("it has come back without its data")
			}
		}},
		{"handoff", "", "pause:at=100ms,for=200ms", brief, func(t *testing.T, s results.Injection, _ *outcome, _ *servers.Server) { halted(t, s) }},
		{"spin", "", "client-pause:at=100ms,for=200ms", brief, func(t *testing.T, s results.Injection, _ *outcome, _ *servers.Server) { halted(t, s) }},
		{"handoff", "", "script-flush:at=100ms", brief, func(t *testing.T, s results.Injection, run *outcome, server *servers.Server) {
			went(t, s)
			if len(run.Errors) > 0 || !calls(t, server, "script|flush") {
				t.Errorf("errors %v", run.Errors)
			}
		}},
		{"pubsub", "", "kill-subscribers:at=500ms", brief, func(t *testing.T, s results.Injection, run *outcome, server *servers.Server) {
			went(t, s)
			if s.LostWakeUps > 0 || !calls(t, server, "client|kill") {
				t.Errorf("strike %+v, errors %v", s, run.Errors)
			}
		}},
		{"spin:backoff=fixed,base=5ms", "replicas:1", "failover:at=100ms,for=100ms,lag=50ms", untilAnother, func(t *testing.T, s results.Injection, run *outcome, server *servers.Server) {
			overlapped(t, s, run)
			if server.Primary() != 1 || marked(t, server, false) != 2 {
				t.Errorf("node %d is the primary, %d have what it had", server.Primary(), marked(t, server, false))
			}
		}},
		{"spin", "replicas:2", "failover:at=100ms,for=100ms,promote=advanced", brief, func(t *testing.T, s results.Injection, _ *outcome, server *servers.Server) {
			if !s.Halts || s.RecoveryNS == nil || server.Primary() != 2 { // 1 is the one that heard nothing
				t.Errorf("node %d is the primary: strike %+v", server.Primary(), s)
			}
		}},
		{"redlock", "nodes:3", "node-down:at=100ms,for=200ms", brief, func(t *testing.T, s results.Injection, _ *outcome, server *servers.Server) {
			went(t, s)
			if marked(t, server, false) != 3 {
				t.Error("it has come back without its data")
			}
		}},
		{"redlock", "nodes:3", "node-hang:at=100ms,for=200ms,n=2", brief, func(t *testing.T, s results.Injection, _ *outcome, _ *servers.Server) { halted(t, s) }},
		{"redlock", "nodes:3", "node-restart-empty:at=100ms,node=0,n=3", untilAnother,
			func(t *testing.T, s results.Injection, run *outcome, server *servers.Server) {
				overlapped(t, s, run)
				if marked(t, server, false) > 0 {
					t.Error("they have come back with their data")
				}
			}},
		{"redlock", "nodes:3", "node-expire-early:at=100ms,n=2", untilAnother, func(t *testing.T, s results.Injection, run *outcome, server *servers.Server) {
			overlapped(t, s, run)
			if marked(t, server, false) != 3 {
				t.Error("what is somebody else's has run out too")
			}
		}},
		{"spin", "", "latency:at=100ms,for=500ms,delay=20ms", brief, func(t *testing.T, s results.Injection, run *outcome, _ *servers.Server) {
			went(t, s) // a SET there and back
			if s.Stall.NS < int64(40*time.Millisecond) || run.Speed.Release.Max.NS < int64(40*time.Millisecond) {
				t.Errorf("nothing took longer: %+v", s)
			}
		}},
		{"pubsub", "", "bandwidth:at=100ms,for=300ms,rate=1", brief, func(t *testing.T, _ results.Injection, run *outcome, _ *servers.Server) {
			if run.Speed.Release.Max.NS < int64(50*time.Millisecond) { // an EVALSHA has 150 bytes
				t.Errorf("nothing took longer: %+v", run.Speed.Release.Max)
			}
		}},
		{"spin", "", "reset:at=100ms,for=100ms", brief, func(t *testing.T, s results.Injection, run *outcome, _ *servers.Server) {
			if len(run.Errors) == 0 {
				t.Errorf("no connection broke: %+v", s)
			}
		}},
		{"handoff", "", "partition:at=100ms,for=250ms", brief, func(t *testing.T, s results.Injection, _ *outcome, _ *servers.Server) { halted(t, s) }},
		{"handoff", "", "partition:at=100ms,for=250ms,instances=1", brief, func(t *testing.T, s results.Injection, _ *outcome, _ *servers.Server) {
			if s.Halts {
				t.Errorf("two instances are left: %+v", s)
			}
		}},
		{"spin", "", "half-open:at=100ms,for=2s,instances=1", brief, func(t *testing.T, s results.Injection, run *outcome, _ *servers.Server) {
			// The third whose connection is silent waits for a reply all the time.
			if gap, others := run.longestGap(0); gap < 1500*time.Millisecond || others < 1 {
				t.Errorf("at most it got nothing for %v, in which others got %d locks", gap, others)
			}
		}},
	})
}

func TestCheckNamesWhatCannotBeDone(t *testing.T) {
	for _, test := range []struct {
		fault, topology  string
		started, allowed bool
		want             string
	}{
		{"kill", "single", true, false, ""},
		{"kill", "single", false, true, "--fault kill needs a Redis that lockbench starts itself"},
		{"kill:node=1", "single", true, false, "there is no node 1, of 1"},
		{"script-flush", "single", false, false, "--allow-faults-on-my-server allows it"},
		{"script-flush", "single", false, true, ""},
		{"holder-crash", "single", false, false, ""},
		{"failover", "single", true, false, "--fault failover needs --topology replicas:N, not single"},
		{"failover", "replicas:1", true, false, ""},
		{"node-down:n=3", "nodes", true, false, ""}, // the usual five
		{"node-down:n=5", "nodes", true, false, "there is no node 5, of 5"},
		{"node-expire-early", "", false, true, ""}, // not known yet
	} {
		fault, err := workloads.ParseFault(test.fault)
		if err != nil {
			t.Fatal(err)
		}
		topology, err := servers.ParseTopology(test.topology)
		if err != nil {
			t.Fatal(err)
		}
		wrong := disturb.Check([]workloads.Fault{fault}, topology, test.started, test.allowed)
		if test.want == "" {
			if len(wrong) > 0 {
				t.Errorf("%+v: %v", test, wrong)
			}
		} else if len(wrong) != 1 || !strings.Contains(wrong[0].Error(), test.want) {
			t.Errorf("%+v: %v", test, wrong)
		}
	}
}
