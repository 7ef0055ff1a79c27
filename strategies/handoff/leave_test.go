package handoff_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// Whoever gives up is passed over, wherever it waits; the process keeps its place for the
// others.
func TestSomeGiveUp(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"handoff:linger=0s", "cohort"} {
		p := newPair(t, variant, time.Hour, 5, 1)
		if variant != "cohort" { // b1 came last, to Redis too
			p.leave("a1")
			p.leave("a4")
			p.done(p.turns(p.first, "a2 a3 a5 b1"))
			continue
		}
		p.leave("a1") // who brought the place
		if n := p.length(); n != 2 {
			t.Errorf("two processes have %d places", n)
		}
		held := p.turns(p.first, "a2")
		p.leave("a3")
		p.leave("a5")
		p.done(p.turns(held, "a4 b1"))
	}
}

// With its last waiter a process leaves the queue at once.
func TestAllGiveUp(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"handoff", "handoff:linger=0s"} {
		p := newPair(t, variant, time.Hour, 2, 1)
		p.leave("a1")
		p.leave("a2")
		poll.Until(t, "only the other is queued", func() bool { return p.length() == 1 })
		p.done(p.turns(p.first, "b1"))
	}
}

// A lease that is passed to somebody who gives up in that moment goes to the next.
func TestGivenUpWhenPassed(t *testing.T) {
	t.Parallel()
	p := newPair(t, "cohort", time.Hour, 0, 0)
	for round := range 60 {
		for n := range 3 {
			p.join(fmt.Sprint("a", n), p.a)
		}
		held := p.turns(p.first, "a0")
		var all sync.WaitGroup
		all.Go(func() { spin(); p.cancel["a1"]() })
		spin()
		trial.Release(t, held)
		all.Wait()
		s := p.any()
		if s.who == "a1" && s.err == nil {
			trial.Release(t, s.lease)
		}
		if s.who != "a2" {
			if s.err != nil && !errors.Is(s.err, context.Canceled) {
				t.Fatalf("round %d: %s got: %v", round, s.who, s.err)
			}
			s = p.any()
		} else if s := p.any(); s.who != "a1" || s.err == nil {
			t.Fatalf("round %d: %s came after a2", round, s.who)
		}
		if s.lease == nil {
			s.lease = p.next("a2")
		}
		trial.Release(t, s.lease)
		p.first = acquire(t, p.h)
	}
	p.done(p.first)
}

// spin takes less than the system's timers can.
func spin() {
	for end := time.Now().Add(rand.N(100 * time.Microsecond)); time.Now().Before(end); {
	}
}

// A grant that is under way to a process whose last waiter gives up goes on to the next.
func TestLastGivesUpWhenGranted(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"handoff", "handoff:linger=0s"} {
		p := newPair(t, variant, time.Hour, 0, 0)
		for round := range 60 {
			p.join("a1", p.a)
			p.join("b1", p.b)
			var all sync.WaitGroup
			all.Go(func() { spin(); spin(); spin(); p.cancel["a1"]() })
			trial.Release(t, p.first)
			all.Wait()
			for left := 2; left > 0; left-- {
				s := p.any()
				switch {
				case s.err == nil:
					trial.Release(t, s.lease)
				case s.who != "a1" || !errors.Is(s.err, context.Canceled):
					t.Fatalf("round %d: %s got: %v", round, s.who, s.err)
				}
			}
			p.first = acquire(t, p.h)
		}
		p.done(p.first)
	}
}

// What a process asks twice in one call to be given up is given up once: the next has it by
// then.
func TestGivenUpTwiceInOneCall(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	trial.Start(t, server, "handoff", time.Hour) // which loads the scripts
	q := newQueue(t, server)
	ctx := t.Context()
	for _, stranger := range []string{"B", "C"} {
		heard := q.server.SSubscribe(ctx, "trial:handoff:"+process(stranger))
		defer func() { _ = heard.Close() }()
		if _, err := heard.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		q.server.RPush(ctx, list, entry(stranger, 1, time.Hour))
	}
	q.server.Set(ctx, lock, process("A")+":1+", time.Hour)
	mine := entry("A", 1, time.Hour)
	err := q.server.EvalSha(ctx, handoff.Scripts["leave"], []string{lock, list}, "trial:handoff:", process("A"), mine, mine).Err()
	if err != nil {
		t.Fatal(err)
	}
	if owner := q.server.Get(ctx, lock).Val(); owner != process("B")+":1+" {
		t.Errorf("the lock is %q, the next is B", owner)
	}
	if n := q.length(); n != 1 {
		t.Errorf("%d are queued, want C", n)
	}
}

// A release is told that it was one, also when the only neighbour gives up in that moment,
// so that the process both enters the queue and leaves it.
func TestReleaseWhileTheLastWaiterLeaves(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"handoff", "handoff:linger=0s"} {
		server := redistest.Start(t)
		p := trial.Start(t, server, variant, time.Hour)
		q := newQueue(t, server)
		for range 100 {
			lease := acquire(t, p)
			q.come("waiter", p)
			poll.Until(t, "it waits", func() bool { n, _ := handoff.Waiting(locker(p), "key"); return n == 1 })
			var all sync.WaitGroup
			all.Go(func() { spin(); q.cancel["waiter"]() })
			spin()
			trial.Release(t, lease)
			all.Wait()
			switch s := q.any(); {
			case s.err == nil:
				trial.Release(t, s.lease)
			case !errors.Is(s.err, context.Canceled):
				t.Fatal(s.err)
			}
		}
		q.nothingLeft(p)
	}
}

// Many waits that end with their context leave nothing, at Redis or in the process.
func TestManyGiveUp(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"handoff", "handoff:linger=0s"} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			manyGiveUp(t, variant)
		})
	}
}

func manyGiveUp(t *testing.T, variant string) {
	server := redistest.Start(t)
	holder, p := trial.Start(t, server, variant, time.Hour), trial.Start(t, server, variant, time.Hour)
	q := newQueue(t, server)
	lease := acquire(t, holder)
	const callers = 200
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), rand.N(30*time.Millisecond))
			defer cancel()
			if _, err := p.Locker.Acquire(ctx, "key"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a wait with a deadline returned %v", err)
			}
		})
	}
	all.Wait()
	// Entries in the middle of a long queue stay until their turn.
	poll.Until(t, "the ends of the queue are empty", func() bool { return q.length() <= callers-2*64 })
	trial.Release(t, lease)
	q.nothingLeft(holder, p)
	for _, p := range []trial.Process{holder, p} { // the lock was crowded for a second
		poll.Until(t, "nothing is kept of the lock", func() bool { return handoff.Lines(locker(p)) == 0 })
	}
}

// A try-lock does not wait, whoever has the lock.
func TestTryAcquire(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b := trial.Start(t, server, "handoff", time.Hour), trial.Start(t, server, "handoff", time.Hour)
	q := newQueue(t, server)
	try := func(p trial.Process) (*handoff.Lease, error) {
		lease, err := locker(p).TryAcquire(t.Context(), "key")
		held, _ := lease.(*handoff.Lease)
		return held, err
	}
	lease, err := try(a)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]trial.Process{"its own process": a, "another": b} {
		if _, err := try(p); !errors.Is(err, strategies.ErrHeld) {
			t.Errorf("a try of %s returned %v", name, err)
		}
	}
	q.join("waiter", b)
	if _, err := try(b); !errors.Is(err, strategies.ErrHeld) {
		t.Errorf("a try beside a waiter returned %v", err)
	}
	trial.Release(t, lease)
	if _, err := try(a); !errors.Is(err, strategies.ErrHeld) {
		t.Errorf("a try of a lock that was handed over returned %v", err)
	}
	trial.Release(t, q.next("waiter"))
	if lease, err = try(a); err != nil {
		t.Fatal(err)
	}
	if lease.FencingToken() <= q.last {
		t.Errorf("token %d came after %d", lease.FencingToken(), q.last)
	}
	trial.Release(t, lease)
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := locker(a).TryAcquire(ended, "key"); !errors.Is(err, context.Canceled) {
		t.Errorf("a try with a context that has ended returned %v", err)
	}
	q.nothingLeft(a, b)
}

// Close ends all waits, in the process and at Redis. Who holds can release.
func TestClose(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"handoff", "handoff:linger=0s"} {
		p := newPair(t, variant, time.Hour, 2, 1)
		p.join("h1", p.h)
		for _, process := range []trial.Process{p.h, p.a} {
			if err := process.Close(); err != nil {
				t.Error(err)
			}
		}
		for range 3 {
			if s := p.any(); s.who == "b1" || !errors.Is(s.err, strategies.ErrClosed) {
				t.Errorf("%s got: %v, when its process was closed", s.who, s.err)
			}
		}
		if _, err := p.a.Locker.Acquire(t.Context(), "key"); !errors.Is(err, strategies.ErrClosed) {
			t.Errorf("an acquire after Close returned %v", err)
		}
		if _, err := locker(p.a).TryAcquire(t.Context(), "key"); !errors.Is(err, strategies.ErrClosed) {
			t.Errorf("a try after Close returned %v", err)
		}
		held := p.turns(p.first, "b1") // the closed one's places are not heard
		notHeld(t, p.first)
		trial.Release(t, held)
		p.nothingLeft(p.b)
	}
}

// A lease of a process that was closed is still told when it is over.
func TestLostAfterClose(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := trial.Start(t, server, "handoff", 100*time.Millisecond)
	lease := acquire(t, p)
	lost := lease.Lost()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	<-lost
	notHeld(t, lease)
}

// A closed process leaves nothing in the queue: the next release would go to it while Redis
// has not noticed yet that it is gone, and nobody would have the lock for a TTL.
func TestCloseLeavesTheQueue(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"handoff", "handoff:linger=0s"} {
		server := redistest.Start(t)
		h, p := trial.Start(t, server, variant, time.Hour), trial.Start(t, server, variant, time.Hour)
		q := newQueue(t, server)
		lease := acquire(t, h)
		for n := range 3 {
			q.join(fmt.Sprint("waiter ", n), p)
		}
		if q.length() == 0 {
			t.Fatal("nobody is queued")
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if n := q.length(); n != 0 {
			t.Errorf("%s: a closed process has %d places in the queue", variant, n)
		}
		for range 3 {
			if s := q.any(); !errors.Is(s.err, strategies.ErrClosed) {
				t.Errorf("a waiter was told %v", s.err)
			}
		}
		trial.Release(t, lease)
		trial.Release(t, acquire(t, h))
	}
}

// What a command takes that was under way during Close is given up, too.
func TestCloseGivesUpWhatComesLate(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := trial.Start(t, server, "handoff", time.Hour)
	trial.Release(t, acquire(t, p))
	client := server.Client(t)
	client.Set(t.Context(), lock, handoff.OweLate(locker(p), "key"), time.Hour)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if owner := client.Get(t.Context(), lock).Val(); owner != "" {
		t.Errorf("%q has the lock, whose process is closed", owner)
	}
}

// Close ends although a process gives up listening to a Redis that does not answer just while it is
// being closed: nothing else would end the connection.
func TestCloseWhileListeningIsGivenUp(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	h, p := trial.Start(t, server, "handoff", time.Hour), trial.Start(t, server, "handoff", time.Hour)
	q := newQueue(t, server)
	lease := acquire(t, h)
	q.join("waiter", p)
	poll.Until(t, "the process listens", func() bool { return handoff.Listener(locker(p)) != nil })
	server.Pause()
	closed := make(chan error, 1)
	go func() { closed <- p.Close() }()
	if !handoff.GiveUpListening(locker(p)) {
		t.Error("the process did not listen any more")
	}
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("Close has not ended")
	}
	server.Resume()
	trial.Release(t, lease)
}

// What Redis refuses for good is given up: it is not asked again and again, and other locks do not
// wait for it.
func TestADebtThatCannotBePaid(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := trial.Start(t, server, "handoff", time.Hour)
	l, client := locker(p), server.Client(t)
	calls := locktest.Calls(t, client, func() {
		for _, owed := range []<-chan struct{}{
			handoff.Owe(l, "bad", func(queue string) { client.Set(t.Context(), queue, "no list", 0) }),
			handoff.Owe(l, "good", nil),
		} {
			select {
			case <-owed:
			case <-time.After(patience):
				t.Fatal("it is still owed")
			}
		}
		poll.Until(t, "nothing is owed", func() bool { return handoff.Quiet(l) })
	})
	if n := calls["evalsha"] + calls["eval"]; n > 4 {
		t.Errorf("two debts had %d scripts run", n)
	}
}

// What Redis refuses for a while is asked for again until it is done.
func TestADebtThatIsRefusedForAWhile(t *testing.T) {
	t.Parallel()
	p := newPair(t, "handoff", time.Hour, 1, 1)
	ctx := t.Context()
	refused := func() (n int) {
		for line := range strings.Lines(p.server.Info(ctx, "errorstats").Val()) {
			_, _ = fmt.Sscanf(line, "errorstat_NOREPLICAS:count=%d", &n)
		}
		return n
	}
	p.server.ConfigSet(ctx, "min-replicas-to-write", "1")
	p.leave("a1")
	poll.Until(t, "it was refused again and again", func() bool { return refused() >= 3 })
	if n := p.length(); n != 2 {
		t.Errorf("%d are queued at a server that takes no writes", n)
	}
	p.server.ConfigSet(ctx, "min-replicas-to-write", "0")
	poll.Until(t, "only the other is queued", func() bool { return p.length() == 1 })
	p.done(p.turns(p.first, "b1"))
}

// Only a refusal that does not pass has a debt be given up.
func TestOnlyWhatIsHopelessIsGivenUp(t *testing.T) {
	t.Parallel()
	for _, passes := range []error{
		context.DeadlineExceeded, io.EOF, refusal("LOADING Redis is loading"), refusal("READONLY You can't write"),
		refusal("CLUSTERDOWN Hash slot not served"), refusal("MASTERDOWN Link with MASTER is down"),
		refusal("TRYAGAIN Multiple keys"),
		refusal("NOREPLICAS Not enough"), refusal("MISCONF Errors writing"), refusal("OOM command not allowed"),
		refusal("BUSY Redis is busy"),
		refusal("NOPERM this user"), refusal("MOVED 1 127.0.0.1:1"), refusal("ERR max number of clients reached"),
	} {
		if handoff.Hopeless(passes) {
			t.Errorf("%v: given up", passes)
		}
	}
	for _, stays := range []error{refusal("WRONGTYPE Operation against a key"), refusal("ERR unknown command 'evalsha'")} {
		if !handoff.Hopeless(fmt.Errorf("run: %w", stays)) {
			t.Errorf("%v: asked for again", stays)
		}
	}
}

// refusal is an error that Redis answers.
type refusal string

func (r refusal) Error() string { return string(r) }

func (refusal) RedisError() {}

// Callers who give up while Redis stands still leave no lock taken: each lock that may have been
// taken for one of them is given up, however many there are.
func TestAStallStrandsNoLock(t *testing.T) {
	t.Parallel()
	const callers = 3000
	server := redistest.Start(t)
	p := trial.Start(t, server, "handoff", time.Hour)
	q := newQueue(t, server)
	trial.Release(t, acquire(t, p)) // it is connected
	server.Pause()
	var all sync.WaitGroup
	for n := range callers {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if _, err := p.Locker.Acquire(ctx, fmt.Sprint("key-", n)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("an acquire of a server that stands still returned %v", err)
			}
		})
	}
	all.Wait()
	server.Resume()
	q.nothingLeft(p)
}

// Callers who give up and come again cost Redis nothing, whatever the number of those who wait:
// they keep their process's places.
func TestImpatientCallers(t *testing.T) {
	t.Parallel()
	const waiters = 500
	server := redistest.Start(t)
	h, p := attentive(t, server, "handoff:linger=0s"), attentive(t, server, "handoff:linger=0s")
	q := newQueue(t, server)
	lease := acquire(t, h)
	for n := range waiters {
		q.come(fmt.Sprint("caller ", n), p)
	}
	q.waiting(p, waiters)
	calls := locktest.Calls(t, q.server, func() {
		for n := range waiters - 1 {
			q.leave(fmt.Sprint("caller ", n))
			q.join(fmt.Sprint("caller ", n+waiters), p)
		}
	})
	delete(calls, "llen")
	if len(calls) > 0 {
		t.Errorf("%d who gave up and came again cost %v", waiters-1, calls)
	}
	for n := range waiters - 10 { // nobody comes in their place
		q.leave(fmt.Sprint("caller ", n+waiters-1))
	}
	for range 10 { // those who are left have their turns
		trial.Release(t, lease)
		s := q.any()
		if s.err != nil {
			t.Fatal(s.err)
		}
		lease = s.lease
	}
	trial.Release(t, lease)
	q.nothingLeft(h, p)
}

// To leave a long queue costs Redis no more than a short one: nobody searches it.
func TestLeavingALongQueue(t *testing.T) {
	t.Parallel()
	const waiters, others = 200, 5000
	server := redistest.Start(t)
	h, p := trial.Start(t, server, "handoff:linger=0s", time.Hour), trial.Start(t, server, "handoff:linger=0s", time.Hour)
	q := newQueue(t, server)
	ctx := t.Context()
	lease := acquire(t, h)
	fill := func() {
		_, err := q.server.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for n := range others {
				pipe.RPush(ctx, list, entry("X", n, time.Hour))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	q.server.Append(ctx, lock, "+")
	fill()
	for n := range waiters {
		q.come(fmt.Sprint("caller ", n), p)
	}
	q.waiting(p, waiters)
	fill()
	calls := locktest.Calls(t, q.server, func() {
		for n := range waiters {
			q.cancel[fmt.Sprint("caller ", n)]()
		}
		for range waiters {
			if s := q.any(); s.err == nil {
				t.Errorf("%s was served", s.who)
			}
		}
		poll.Until(t, "Redis has been told", func() bool { return handoff.Quiet(locker(p)) })
	})
	if calls["lrem"] > 0 {
		t.Errorf("the whole queue was searched %d times", calls["lrem"])
	}
	q.server.LTrim(ctx, list, others, others+waiters-1) // they are next, and their process answers for them
	q.join("last", p)
	trial.Release(t, q.turns(lease, "last"))
	q.nothingLeft(h, p)
}
