package selfcheck

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	_ "github.com/lockbench/lockbench/strategies/all"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/workloads"
)

func TestMain(m *testing.M) {
	servers.Quiet()
	// After a server has died go-redis looks once a second whether it is back, and
	// notices only then that its pool has been closed.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// quick is enough to see a fault.
func quick() Effort {
	return Effort{Stalled: 2 * time.Second, Window: 600 * time.Millisecond}
}

// only carries one check out, on a server of its own unless there is one.
func only(t *testing.T, name, address string, change func(engine.Job) engine.Job) Check {
	t.Helper()
	found, err := Run(t.Context(), Options{
		Redis: lockbench.StoreOptions{Address: address}, Only: []string{name}, Effort: quick(), Change: change,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Checks) != 1 || found.Checks[0].Name != name {
		t.Fatalf("%s: checks %+v", name, found.Checks)
	}
	return found.Checks[0]
}

// failed are the figures of a check that are at fault; all of them have a value.
func failed(c Check) []string {
	var names []string
	for _, m := range c.Measured {
		if m.Verdict == Fail {
			names = append(names, fmt.Sprintf("%s: %v, not %s", m.Name, *m.Value, m.Wanted))
		}
	}
	return names
}

// Each check finds what it is there to find. What an honest harness comes to on a
// busy machine is not a test's business, but it must not be found at fault where
// only counting is done.
func TestEachCheckFindsItsFault(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault func(engine.Job) engine.Job
		found string // in the name of a figure that fails
		calm  bool   // an honest harness is not found at fault on a busy machine either
	}{
		{"omission", func(j engine.Job) engine.Job { // it waits for the server before it asks again
			j.Workload.Rate, j.Workload.Clients, j.Workload.Hold = 0, 1, workloads.Dist{}
			return j
		}, "p99", false},
		{"holds", func(j engine.Job) engine.Job { // it does not hold for as long as it should
			j.Workload.Hold = workloads.Fixed(time.Duration(j.Workload.Hold.Mean()) * 9 / 10)
			return j
		}, "hold p50", true},
		{"audit", func(j engine.Job) engine.Job { // it takes every lease for one that has run out
			j.Workload.TTL = workloads.Duration(time.Nanosecond)
			return j
		}, "found by the audit", true},
		{"outside", func(j engine.Job) engine.Job { // it leaves out a hundred commands
			stranger(t, j, 100)
			return j
		}, "commands told otherwise", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := only(t, test.name, servers.Quickest(), test.fault)
			if c.Verdict != Fail || !strings.Contains(strings.Join(failed(c), ", "), test.found) {
				t.Errorf("with a fault it is %s: %q, %q failed, want %q", c.Verdict, c.Why, failed(c), test.found)
			}
			if !test.calm {
				return
			}
			if c := only(t, test.name, servers.Quickest(), nil); c.Verdict == Fail {
				t.Errorf("without a fault %q failed", failed(c))
			}
		})
	}
}

// stranger sends commands that the run knows nothing of.
func stranger(t *testing.T, job engine.Job, commands int) {
	connected, err := job.Target.Connect(t.Context(), "stranger", 1, nil)
	if err != nil {
		t.Error(err)
		return
	}
	defer connected.Close()
	client := connected.Nodes()[0].(goredis.Node).Client
	for range commands {
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Error(err)
		}
	}
}

func TestOnAServerOfTheUsersNothingIsStalledAndNobodyBlamed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	if c := only(t, "omission", server.URL(), nil); c.Verdict != Inconclusive || len(c.Why) != 1 {
		t.Errorf("omission: %s, %q", c.Verdict, c.Why)
	}
	disturbed := func(j engine.Job) engine.Job {
		stranger(t, j, 100)
		return j
	}
	if c := only(t, "outside", server.URL(), disturbed); c.Verdict != Inconclusive {
		t.Errorf("outside, with a stranger: %s", c.Verdict)
	}
}

func TestAStallShowsInTheOpenLoop(t *testing.T) {
	t.Parallel()
	c := only(t, "omission", servers.Quickest(), nil)
	for _, m := range c.Measured {
		if m.Verdict == Fail && !strings.Contains(m.Name, "not stalled") { // a busy machine may be slow all the time
			t.Errorf("%s is %v, want %s", m.Name, *m.Value, m.Wanted)
		}
	}
}

func TestAnInterruptLeavesTheRestOut(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	found, err := Run(ctx, Options{
		Redis: lockbench.StoreOptions{Address: servers.Quickest()}, Only: []string{"audit", "outside"}, Effort: quick(),
		Progress: func(what string) {
			if strings.HasPrefix(what, "outside") {
				cancel()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !found.Interrupted || len(found.Checks) != 1 {
		t.Errorf("interrupted %v, checks %+v", found.Interrupted, found.Checks)
	}
}
