package handoff_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// Acquiring a free lock takes one round trip, because the process sends TIME together with SET. Without waiters, an
// acquire and its release run five commands, or three if the server has a command that deletes a key by its value.
// Without tokens the process sends no TIME, so both numbers of commands are one lower.
func TestCostAlone(t *testing.T) {
	variants := []string{"handoff", "cohort", "handoff:tokens=false"}
	onOne(t, variants, func(t *testing.T, server *redistest.Server, variant string) {
		w := new(wire)
		p := w.start(t, server, variant, time.Hour)
		q := newQueue(t, server)
		tokens := trial.Variant(t, variant).Info().Claims.Fencing
		calls := locktest.Calls(t, q.server, func() {
			w.stall()
			q.come("one", p)
			poll.Until(t, "all is sent", func() bool {
				return w.sent(command("set")) && w.sent(command("time")) == tokens
			})
			w.flow()
			trial.Release(t, q.next("one"))
		})
		want := map[string]int{"set": 1, "time": 1, "evalsha": 1, "get": 1, "del": 1}
		for _, native := range []string{"delifeq", "delex"} {
			if has, err := q.server.Command(t.Context()).Result(); err != nil {
				t.Fatal(err)
			} else if has[native] != nil {
				want = map[string]int{"set": 1, "time": 1, native: 1}
			}
		}
		if !tokens {
			delete(want, "time")
		}
		if !maps.Equal(calls, want) {
			t.Errorf("an acquire and a release cost %v, want %v", calls, want)
		}
	})
}

// With one client per process, each turn costs the same commands, however many clients wait: one RPUSHX, the release
// script with its message, and the script that confirms the next turn. RPUSHX queues the process of the last holder
// again.
func TestCostOfATurn(t *testing.T) {
	t.Parallel()
	for _, processes := range []int{3, 12} {
		t.Run(fmt.Sprint(processes), func(t *testing.T) {
			onOne(t, both, func(t *testing.T, server *redistest.Server, variant string) {
				var all []trial.Process
				for range processes {
					all = append(all, attentive(t, server, variant))
				}
				q := newQueue(t, server)
				name := func(n int) string { return fmt.Sprint("client-", n%processes) }
				lease := acquire(t, all[0])
				for n := 1; n < processes; n++ {
					q.join(name(n), all[n])
				}
				n := 0
				turns := func(count int) {
					for range count {
						lease = q.turns(lease, name(n+1))
						q.join(name(n), all[n%processes])
						n++
					}
				}
				turns(processes) // now all processes know that others wait
				counted, before := 3*processes, trial.Total(all...)
				calls := locktest.Calls(t, q.server, func() { turns(counted) })
				for command := range strings.FieldsSeq("exists pttl time pexpire") {
					delete(calls, command)
				}
				want := map[string]int{}
				for command := range strings.FieldsSeq("rpushx evalsha get lpop set spublish") {
					want[command] = counted
				}
				for command := range strings.FieldsSeq("evalsha get") { // these confirm a turn
					want[command] += counted
				}
				if !maps.Equal(calls, want) {
					t.Errorf("%d turns with %d waiting cost %v, want %v", counted, processes-1, calls, want)
				}
				after := trial.Total(all...)
				after.Attempts, after.Useful = after.Attempts-before.Attempts, after.Useful-before.Useful
				if want := (strategies.ProbeCounts{Attempts: int64(counted), Useful: int64(counted)}); after != want {
					t.Errorf("%d turns counted %+v, want %+v", counted, after, want)
				}
				q.drain(lease, processes-1)
			})
		})
	}
}

// attentive starts a process that checks its locks only once an hour, so that a test can count commands exactly.
func attentive(t *testing.T, server *redistest.Server, variant string) trial.Process {
	t.Helper()
	p := trial.Start(t, server, variant, time.Hour)
	handoff.Attend(locker(p), time.Hour)
	return p
}

// Passing a lease on to 49 more waiters of the same process sends no command except the periodic check of the lease.
// The release that then hands the lock to another process costs as much as one turn. The script of that release also
// queues the first process again.
func TestCostOfPasses(t *testing.T) {
	t.Parallel()
	const waiters = 50
	server := redistest.Start(t)
	a, b := attentive(t, server, "cohort"), attentive(t, server, "cohort")
	q := newQueue(t, server)
	name := func(n int) string { return fmt.Sprint("client-", n) }
	lease := acquire(t, b)
	joining := locktest.Calls(t, q.server, func() {
		for n := range waiters {
			q.join(name(n), a)
		}
	})
	q.join("other", b) // this waiter queues when b releases
	before := a.Counts()
	lease = q.turns(lease, name(0))
	passing := time.Now()
	passes := locktest.Calls(t, q.server, func() {
		for n := 1; n < waiters; n++ {
			lease = q.turns(lease, name(n))
		}
	})
	passed := time.Since(passing)
	counts := a.Counts()
	q.join("late", a)
	last := locktest.Calls(t, q.server, func() { lease = q.turns(lease, "other") })
	trial.Release(t, q.turns(lease, "late"))
	q.nothingLeft(a, b)
	delete(joining, "set") // the first may ask whether the lock is free
	delete(joining, "time")
	if joining["evalsha"] != 1 || joining["rpush"] != 1 || joining["rpushx"] > 0 {
		t.Errorf("%d were queued by %v, want one script", waiters, joining)
	}
	// While a process passes a lease on, it checks at most every 25 ms that Redis still has the lease.
	if most := int(passed/(25*time.Millisecond)) + 1; passes["evalsha"] > most {
		t.Errorf("%d passes in %v looked %d times", waiters-1, passed, passes["evalsha"])
	}
	for command := range strings.FieldsSeq("evalsha get pexpire time") {
		delete(passes, command)
	}
	if len(passes) > 0 {
		t.Errorf("%d passes cost %v", waiters-1, passes)
	}
	if counts.Useful-before.Useful != waiters || counts.Futile != 0 || counts.Attempts != before.Attempts {
		t.Errorf("%d acquisitions: %+v, before %+v", waiters, counts, before)
	}
	for command := range strings.FieldsSeq("get time pexpire") {
		delete(last, command)
	}
	if want := map[string]int{"evalsha": 2, "rpush": 1, "lpop": 1, "set": 1, "spublish": 1}; !maps.Equal(last, want) {
		t.Errorf("to give up and queue again cost %v, want %v and what confirms it", last, want)
	}
}

// A process checks at most a hundred locks a second, so 1000 concurrent waits do not multiply the load on Redis. The
// test allows 150 scripts a second.
func TestCostOfWaitingForManyLocks(t *testing.T) {
	t.Parallel()
	const keys, window = 1000, 3 * time.Second
	server := redistest.Start(t)
	look, p := lookAt(t, server), trial.Start(t, server, "handoff", time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	name := func(n int) string { return fmt.Sprint("key-", n) }
	for n := range keys {
		look.Set(t.Context(), "trial:"+name(n), "another's", time.Hour)
	}
	for n := range keys {
		all.Go(func() {
			if _, err := p.Ask(ctx, name(n)); err == nil {
				t.Errorf("the lock on %s was granted", name(n))
			}
		})
	}
	poll.Until(t, "all are queued", func() bool {
		_, queued := handoff.Waiting(locker(p), name(keys-1), time.Hour)
		return queued && look.DBSize(t.Context()).Val() == 2*keys
	})
	time.Sleep(time.Second) // the first check of each lock comes soon
	calls := locktest.Calls(t, look, func() { time.Sleep(window) })
	if n := calls["evalsha"]; n > int(window.Seconds())*150 {
		t.Errorf("waiters of %d locks had %d scripts run in %v", keys, n, window)
	}
	cancel()
	all.Wait()
}
