package handoff_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// alone is what a turn costs while nobody waits.
var alone = map[string]int{"set": 1, "time": 1, "evalsha": 1, "get": 1, "del": 1}

func TestCostAlone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := trial.Start(t, server, "handoff", time.Hour)
	for range 3 {
		calls := locktest.Calls(t, server.Client(t), func() { trial.Release(t, acquire(t, p)) })
		if !maps.Equal(calls, alone) {
			t.Errorf("an acquire and a release cost %v, want %v", calls, alone)
		}
	}
}

// An acquire is one round trip: it asks what time it is before it knows that it has the lock.
func TestAcquireIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	w := new(wire)
	p := w.start(t, server, "handoff", time.Hour)
	q := newQueue(t, server)
	w.stall()
	q.come("one", p)
	poll.Until(t, "both are sent", func() bool { return w.sent(command("set")) && w.sent(command("time")) })
	w.flow()
	trial.Release(t, q.next("one"))
}

// In processes with one client each, a turn costs as much whatever the number of those who
// wait: to queue behind others, the release, and the message.
func TestCostOfATurn(t *testing.T) {
	t.Parallel()
	for _, processes := range []int{3, 12} {
		t.Run(fmt.Sprint(processes), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			var all []trial.Process
			for range processes {
				all = append(all, attentive(t, server, "handoff"))
			}
			func() {
				q := newQueue(t, server)
				name := func(n int) string { return fmt.Sprint("client ", n%processes) }
				lease := acquire(t, all[0])
				for n := 1; n < processes; n++ {
					q.join(name(n), all[n])
				}
				n := 0
				turns := func(count int) {
					for range count {
						trial.Release(t, lease)
						lease = q.next(name(n + 1))
						q.join(name(n), all[n%processes])
						n++
					}
				}
				turns(processes) // now all know that others wait
				counted := 3 * processes
				calls := locktest.Calls(t, q.server, func() { turns(counted) })
				for _, command := range strings.Fields("exists pttl time pexpire") {
					delete(calls, command)
				}
				want := map[string]int{}
				for _, command := range strings.Fields("rpushx evalsha get lpop set spublish") {
					want[command] = counted
				}
				if !maps.Equal(calls, want) {
					t.Errorf("%d turns with %d waiting cost %v, want %v", counted, processes-1, calls, want)
				}
				q.drain(lease, processes-1)
			}()
		})
	}
}

// attentive starts a process that looks at nothing because of the time that goes by.
func attentive(t *testing.T, server *redistest.Server, variant string) trial.Process {
	t.Helper()
	p := trial.Start(t, server, variant, time.Hour)
	handoff.Attend(locker(p), time.Hour)
	return p
}

// drain lets those who wait have their turns.
func (q *queue) drain(lease *handoff.Lease, waiting int) {
	q.t.Helper()
	for range waiting {
		trial.Release(q.t, lease)
		s := q.any()
		if s.err != nil {
			q.t.Fatal(s.err)
		}
		lease = s.lease
	}
	trial.Release(q.t, lease)
}

// A lease that goes round in a process costs what one turn costs, and queueing again goes
// with the release.
func TestCostOfPasses(t *testing.T) {
	t.Parallel()
	const waiters = 50
	server := redistest.Start(t)
	a, b := attentive(t, server, "cohort"), attentive(t, server, "cohort")
	q := newQueue(t, server)
	name := func(n int) string { return fmt.Sprint("client ", n) }
	lease := acquire(t, b)
	joining := locktest.Calls(t, q.server, func() {
		for n := range waiters {
			q.join(name(n), a)
		}
	})
	q.join("other", b) // which queues when b releases
	before := a.Counts()
	trial.Release(t, lease)
	lease = q.next(name(0))
	passing := time.Now()
	passes := locktest.Calls(t, q.server, func() {
		for n := 1; n < waiters; n++ {
			trial.Release(t, lease)
			lease = q.next(name(n))
		}
	})
	passed := time.Since(passing)
	counts := a.Counts()
	q.join("late", a)
	last := locktest.Calls(t, q.server, func() {
		trial.Release(t, lease)
		lease = q.next("other")
	})
	trial.Release(t, lease)
	trial.Release(t, q.next("late"))
	q.nothingLeft(a, b)
	delete(joining, "set") // the first may ask whether the lock is free
	delete(joining, "time")
	if joining["evalsha"] != 1 || joining["rpush"] != 1 || joining["rpushx"] > 0 {
		t.Errorf("%d were queued by %v, want one script", waiters, joining)
	}
	// Redis is asked now and then whether the lease is still there.
	if most := int(passed/(25*time.Millisecond)) + 1; passes["get"] > most {
		t.Errorf("%d passes in %v looked %d times", waiters-1, passed, passes["get"])
	}
	delete(passes, "get")
	if len(passes) > 0 {
		t.Errorf("%d passes cost %v", waiters-1, passes)
	}
	if counts.Useful-before.Useful != waiters || counts.Futile != 0 || counts.Attempts != before.Attempts {
		t.Errorf("%d acquisitions: %+v, before %+v", waiters, counts, before)
	}
	delete(last, "get")
	if want := map[string]int{"evalsha": 1, "rpush": 1, "lpop": 1, "set": 1, "spublish": 1}; !maps.Equal(last, want) {
		t.Errorf("to give up and queue again cost %v, want %v and a GET", last, want)
	}
}
