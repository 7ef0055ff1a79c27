package handoff_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// Where nothing is passed on, whoever is queued first is served first, also among
// processes; and that alone is claimed as such.
func TestFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	if trial.Variant(t, "handoff").Info().Claims.FIFO || !trial.Variant(t, "handoff:linger=0s").Info().Claims.FIFO {
		t.Error("FIFO is claimed where a lease is passed on, or not where it is not")
	}
	const wave = 24
	server := redistest.Start(t)
	var processes []trial.Process
	for range 3 {
		processes = append(processes, trial.Start(t, server, "handoff:linger=0s", time.Hour))
	}
	q := newQueue(t, server)
	name := func(n int) string { return fmt.Sprint("client ", n) }
	lease := acquire(t, processes[0])
	for n := range wave {
		q.join(name(n), processes[n%3])
	}
	for n := range 3 * wave { // as one is served, another comes
		q.join(name(wave+n), processes[n*n%3])
		trial.Release(t, lease)
		lease = q.next(name(n))
	}
	for n := range wave {
		trial.Release(t, lease)
		lease = q.next(name(3*wave + n))
	}
	trial.Release(t, lease)
	q.nothingLeft(processes...)
}

// Who is the first of a process to ask, and is refused, comes before those who came while
// the answer was under way.
func TestTheFirstKeepsItsPlace(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"handoff", "handoff:linger=0s"} {
		server := redistest.Start(t)
		other := trial.Start(t, server, variant, time.Hour)
		w := new(wire)
		p := w.start(t, server, variant, time.Hour)
		q := newQueue(t, server)
		lease := acquire(t, other)
		w.stall()
		q.come("first", p)
		poll.Until(t, "the first asks", func() bool { return w.sent(command("set")) })
		for n, who := range []string{"second", "third"} {
			q.come(who, p)
			poll.Until(t, "another waits", func() bool {
				waiting, _ := handoff.Waiting(locker(p), "key")
				return waiting == n+1 && handoff.Asking(locker(p), "key")
			})
		}
		w.flow()
		q.waiting(p, 3)
		trial.Release(t, q.turns(lease, "first second third"))
		q.nothingLeft(p, other)
	}
}

// Who comes while the first asks is served also if the first gets the lock, or gives up.
func TestOthersComeWhileTheFirstAsks(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"handoff", "handoff:linger=0s"} {
		for _, gone := range []bool{false, true} {
			server := redistest.Start(t)
			w := new(wire)
			p := w.start(t, server, variant, time.Hour)
			q := newQueue(t, server)
			w.stall()
			q.come("first", p)
			poll.Until(t, "the first asks", func() bool { return w.sent(command("set")) })
			q.come("second", p)
			poll.Until(t, "another waits", func() bool { n, _ := handoff.Waiting(locker(p), "key"); return n == 1 })
			if gone {
				q.leave("first")
			}
			w.flow()
			if !gone {
				trial.Release(t, q.next("first"))
			}
			trial.Release(t, q.next("second"))
			q.nothingLeft(p)
		}
	}
}
