package cohort_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/cohort"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// queue is clients who come one after the other, so that who came when is known exactly,
// and release when they are told to.
type queue struct {
	t      *testing.T
	ctx    context.Context
	served chan served
	came   []string
	wait   map[*cohort.Locker]int
}

type served struct {
	name  string
	lease strategies.Lease
}

func newQueue(t *testing.T) *queue {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return &queue{t: t, ctx: ctx, served: make(chan served, 100), wait: map[*cohort.Locker]int{}}
}

// join has somebody queue in a process, and returns when he stands in the queue.
func (q *queue) join(name string, p trial.Process) {
	q.t.Helper()
	l := p.Locker.(*cohort.Locker)
	go func() {
		lease, err := l.Acquire(q.ctx, "key")
		if err == nil {
			q.served <- served{name, lease}
		} else if q.ctx.Err() == nil {
			q.t.Errorf("%s got: %v", name, err)
		}
	}()
	q.wait[l]++
	cohort.AwaitWaiters(q.t, l, "key", q.wait[l])
	q.came = append(q.came, name)
}

// next is who is served next.
func (q *queue) next(p trial.Process) served {
	q.t.Helper()
	select {
	case s := <-q.served:
		q.wait[p.Locker.(*cohort.Locker)]--
		return s
	case <-time.After(20 * time.Second):
		q.t.Fatal("nobody is served")
		return served{}
	}
}

// A batch is who waited when the lease arrived, in the order in which they came: who
// comes later waits for the process's next turn, after the other processes'. Nobody is
// overtaken by more than one batch of another process.
func TestABatchIsWhoWaitedWhenTheLeaseArrived(t *testing.T) {
	server := redistest.Start(t)
	holder := trial.Start(t, server, "handoff", time.Hour)
	a, b := trial.Start(t, server, "cohort:batch=3", time.Hour), trial.Start(t, server, "cohort:batch=3", time.Hour)
	outside := server.Client(t)
	queued := func(n int64) {
		t.Helper()
		trial.Eventually(t, "the process is queued", func() bool { return outside.LLen(t.Context(), "trial:key:handoff").Val() == 1+n })
	}
	lease := holder.Acquire(t, "key")
	q := newQueue(t)
	q.join("b1", b)
	queued(1)
	q.join("a1", a)
	queued(2)
	for n := 2; n <= 5; n++ {
		q.join(fmt.Sprint("b", n), b)
	}
	q.join("a2", a)
	trial.Release(t, lease)

	type turn struct {
		want string
		in   trial.Process
		then func()
	}
	comeAgain := func() {
		// They have come before a1 and a2 are served, and are of the next batch of b: a1 and
		// a2 are overtaken by b2 and b3, as many as a batch less the one who came first.
		q.join("b1 again", b)
		q.join("b6", b)
	}
	var order []string
	for _, turn := range []turn{
		{"b1", b, nil}, {"b2", b, comeAgain}, {"b3", b, func() { q.join("a3", a) }}, // the batch is full
		{"a1", a, func() { q.join("a4", a) }}, {"a2", a, nil}, {"a3", a, nil},
		{"b4", b, nil}, {"b5", b, func() { q.join("b7", b) }}, {"b1 again", b, nil},
		{"a4", a, nil},
		{"b6", b, nil}, {"b7", b, nil},
	} {
		s := q.next(turn.in)
		if s.name != turn.want {
			t.Fatalf("%s was served when it was %s's turn, after %q", s.name, turn.want, order)
		}
		if turn.then != nil {
			turn.then()
		}
		order = append(order, s.name)
		trial.Release(t, s.lease)
	}
	for name, want := range map[string]int{"a1": 2, "a2": 0, "b4": 2, "a4": 0, "b6": 2} {
		if n := overtakes(q.came, order, name); n != want {
			t.Errorf("%s was overtaken %d times, want %d", name, n, want)
		}
	}
}

// overtakes is how many who came after somebody were served before.
func overtakes(came, served []string, name string) int {
	n := 0
	for _, other := range served[:slices.Index(served, name)] {
		if slices.Index(came, other) > slices.Index(came, name) {
			n++
		}
	}
	return n
}
