package selfcheck

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/internal/servers"
	"github.com/lockbench/lockbench/results"
	_ "github.com/lockbench/lockbench/strategies/pubsub" // to stall and to look at
	"github.com/lockbench/lockbench/workloads"
	"github.com/lockbench/lockbench/workloads/spec"
)

// quick is enough to see a fault.
func quick() Effort {
	return Effort{
		Stalled: 3 * time.Second,
		Window:  1500 * time.Millisecond, Rounds: 4, Round: 150 * time.Millisecond,
	}
}

// only carries one check out, on a server of its own unless there is one.
func only(t *testing.T, name, address string, change func(workloads.Job) workloads.Job) results.Check {
	t.Helper()
	found, err := Run(t.Context(), Options{
		Redis: servers.Options{Address: address}, Only: []string{name}, Effort: quick(), Change: change,
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
func failed(c results.Check) []string {
	var names []string
	for _, m := range c.Measured {
		if m.Verdict == results.Fail {
			names = append(names, fmt.Sprintf("%s: %v, not %s", m.Name, *m.Value, m.Wanted))
		}
	}
	return names
}

// Each check finds what it is there to find. What an honest harness comes to on a
// busy machine is not a test's business, but it must not be found at fault where
// only counting is done.
func TestEachCheckFindsItsFault(t *testing.T) {
	server := redistest.Start(t)
	for _, test := range []struct {
		name  string
		fault func(workloads.Job) workloads.Job
		found string // in the name of a figure that fails
		calm  bool   // an honest harness passes on a busy machine too
	}{
		{"omission", func(j workloads.Job) workloads.Job { // it waits for the server before it asks again
			j.Workload.Rate, j.Workload.Clients = 0, 2
			return j
		}, "p99", false},
		{"starvation", func(j workloads.Job) workloads.Job { // it does not see who starves
			j.Strategy = queueWith(false)
			return j
		}, "starved clients", false},
		{"audit", func(j workloads.Job) workloads.Job { // it takes every lease for one that has run out
			j.Workload.TTL = spec.Duration(time.Nanosecond)
			return j
		}, "found by the audit", true},
		{"outside", func(j workloads.Job) workloads.Job { // it leaves out a hundred commands
			stranger(t, server.Addr, 100)
			return j
		}, "commands told otherwise", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			address := servers.Quickest()
			if test.name == "outside" {
				address = server.URL()
			}
			c := only(t, test.name, address, test.fault)
			if c.Verdict != results.Fail || !strings.Contains(strings.Join(failed(c), ", "), test.found) {
				t.Errorf("with a fault it is %s: %q failed, %q, want %q among them", c.Verdict, failed(c), c.Why, test.found)
			}
			if !test.calm {
				return
			}
			if c := only(t, test.name, address, nil); c.Verdict == results.Fail {
				t.Errorf("without a fault %q failed", failed(c))
			}
		})
	}
}

// stranger sends commands that no run knows of.
func stranger(t *testing.T, address string, commands int) {
	client := redis.NewClient(&redis.Options{Addr: address})
	defer client.Close()
	for range commands {
		if err := client.Ping(context.Background()).Err(); err != nil {
			t.Error(err)
		}
	}
}

func TestAServerOfTheUsersIsNotStalled(t *testing.T) {
	t.Parallel()
	c := only(t, "omission", redistest.Start(t).URL(), nil)
	if c.Verdict != results.Inconclusive || len(c.Why) != 1 {
		t.Errorf("%s, %q", c.Verdict, c.Why)
	}
}

func TestAStallShowsInTheOpenLoop(t *testing.T) {
	t.Parallel()
	c := only(t, "omission", servers.Quickest(), nil)
	for _, m := range c.Measured {
		if m.Verdict == results.Fail && !strings.Contains(m.Name, "not stalled") { // a busy machine may be slow all the time
			t.Errorf("%s is %v, want %s", m.Name, *m.Value, m.Wanted)
		}
	}
}

func TestAnInterruptLeavesTheRestOut(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	found, err := Run(ctx, Options{
		Redis: servers.Options{Address: servers.Quickest()}, Only: []string{"audit", "outside"}, Effort: quick(),
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
