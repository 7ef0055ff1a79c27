package handoff_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// lost plays what goes wrong with one command of a process: Redis has carried it out, and
// its answer is lost with the connection, or Redis never had it.
func lost(t *testing.T, variant string, play func(t *testing.T, l *loss)) {
	for _, carried := range []bool{true, false} {
		t.Run(fmt.Sprint(variant, "/carried out ", carried), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			l := &loss{queue: newQueue(t, server), wire: new(wire), carried: carried}
			l.p, l.other = l.wire.start(t, server, variant, time.Hour), trial.Start(t, server, variant, time.Hour)
			play(t, l)
			l.nothingLeft(l.p, l.other)
			for _, p := range []trial.Process{l.p, l.other} { // and everything goes on as ever
				trial.Release(t, acquire(t, p))
			}
			l.nothingLeft(l.p, l.other)
		})
	}
}

type loss struct {
	*queue
	*wire
	p, other trial.Process // p is on the wire
	carried  bool
}

// lose has the next command be lost in which those words are.
func (l *loss) lose(words []byte) (happened chan struct{}) { return l.breaks(words, l.carried) }

// held expects that the other process does not get the lock.
func (l *loss) held() {
	l.t.Helper()
	if _, err := locker(l.other).TryAcquire(l.t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
		l.t.Errorf("another's try returned %v", err)
	}
}

// script is how one is asked for on the wire.
func script(name string) []byte { return []byte(handoff.Scripts[name]) }

func TestLostAcquire(t *testing.T) {
	t.Parallel()
	lost(t, "handoff", func(t *testing.T, l *loss) {
		happened := l.lose(command("set"))
		lease := acquire(t, l.p)
		<-happened
		l.held()
		trial.Release(t, lease)
	})
}

func TestLostTry(t *testing.T) {
	t.Parallel()
	lost(t, "handoff", func(t *testing.T, l *loss) {
		happened := l.lose(command("set"))
		lease, err := locker(l.p).TryAcquire(t.Context(), "key")
		<-happened
		if err != nil {
			t.Fatal(err)
		}
		l.held()
		trial.Release(t, lease)
	})
}

// Whether somebody is queued is not known: he is in the end, once, before who comes later.
func TestLostQueueing(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"handoff", "handoff:linger=0s"} {
		lost(t, variant, func(t *testing.T, l *loss) {
			first := acquire(t, l.other)
			happened := l.lose(script("queue"))
			l.join("victim", l.p)
			<-happened
			l.join("later", l.p)
			l.join("other", l.other)
			trial.Release(t, l.turns(first, "victim later other"))
		})
	}
}

func TestLostQueueingBehindOthers(t *testing.T) {
	t.Parallel()
	lost(t, "handoff:linger=0s", func(t *testing.T, l *loss) {
		first := acquire(t, l.other)
		l.join("one", l.p)
		l.join("two", l.p) // now it knows that others are queued
		happened := l.lose(command("rpushx"))
		l.join("victim", l.p)
		<-happened
		l.join("later", l.p)
		if n := l.length(); n != 4 {
			t.Errorf("four have %d places", n)
		}
		trial.Release(t, l.turns(first, "one two victim later"))
	})
}

// A release whose answer is lost was one, also if others have had the lock since.
func TestLostRelease(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"handoff", "handoff:linger=0s"} {
		lost(t, variant, func(t *testing.T, l *loss) {
			lease := acquire(t, l.p)
			l.join("other", l.other)
			happened := l.lose(script("release"))
			released := make(chan error, 1)
			go func() { released <- lease.Release(t.Context()) }()
			<-happened
			trial.Release(t, l.next("other"))
			if err := <-released; err != nil {
				t.Errorf("a release whose answer was lost returned %v", err)
			}
			notHeld(t, lease)
		})
	}
}

// So it is with one that queues the process again; who waits in it has his turn after the
// other.
func TestLostReleaseAndQueueing(t *testing.T) {
	t.Parallel()
	lost(t, "handoff", func(t *testing.T, l *loss) {
		lease := acquire(t, l.p)
		l.join("other", l.other)
		l.come("neighbour", l.p)
		l.waiting(l.p, 1)
		happened := l.lose(script("release"))
		trial.Release(t, lease)
		<-happened
		held := l.next("other")
		poll.Until(t, "the process is queued", func() bool { return l.length() == 1 })
		trial.Release(t, l.turns(held, "neighbour"))
	})
}

// An extension whose answer is lost is sent again.
func TestLostExtension(t *testing.T) {
	t.Parallel()
	lost(t, "handoff", func(t *testing.T, l *loss) {
		lease := acquire(t, l.p)
		happened := l.lose(script("extend"))
		if err := lease.Extend(t.Context(), 2*time.Hour); err != nil {
			t.Errorf("an extension whose answer was lost returned %v", err)
		}
		<-happened
		if left := time.Until(lease.ValidUntil()); left < 110*time.Minute || left > 2*time.Hour {
			t.Errorf("it is valid for %v then", left)
		}
		l.held()
		trial.Release(t, lease)
	})
}

// One that is not answered while its caller waits leaves the lease valid until when it was:
// it can be extended again, and released.
func TestUnansweredExtension(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	w := new(wire)
	p := w.start(t, server, "handoff", time.Hour)
	q := newQueue(t, server)
	lease := acquire(t, p)
	until := lease.ValidUntil()
	w.stall()
	ctx, cancel := context.WithCancel(t.Context())
	extended := make(chan error, 1)
	go func() { extended <- lease.Extend(ctx, 2*time.Hour) }()
	poll.Until(t, "it is sent", func() bool { return w.sent(script("extend")) })
	cancel()
	if err := <-extended; !errors.Is(err, context.Canceled) {
		t.Errorf("an extension whose caller gave up returned %v", err)
	}
	if !lease.ValidUntil().Equal(until) {
		t.Errorf("it is valid for %v then", time.Until(lease.ValidUntil()))
	}
	w.flow()
	if err := lease.Extend(t.Context(), 2*time.Hour); err != nil || !lease.ValidUntil().After(until) {
		t.Errorf("extended again, it is valid for %v: %v", time.Until(lease.ValidUntil()), err)
	}
	trial.Release(t, lease)
	q.nothingLeft(p)
}

// A wait that was given up and whose end Redis has not heard of leaves nothing behind.
func TestLostLeaving(t *testing.T) {
	t.Parallel()
	lost(t, "handoff", func(t *testing.T, l *loss) {
		first := acquire(t, l.other)
		l.join("gone", l.p)
		happened := l.lose(script("leave"))
		l.leave("gone")
		<-happened
		trial.Release(t, first)
	})
}

// A message that is lost with the connection on which it came is missed by nobody: what
// has become of who waits is asked at once.
func TestLostMessage(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"handoff", "handoff:linger=0s"} {
		server := redistest.Start(t)
		w := new(wire)
		p, other := w.start(t, server, variant, time.Hour), trial.Start(t, server, variant, time.Hour)
		q := newQueue(t, server)
		lease := acquire(t, other)
		q.join("one", p)
		q.join("two", p)
		q.join("three", other)
		happened := w.loses([]byte("smessage"))
		trial.Release(t, lease)
		<-happened
		trial.Release(t, q.turns(q.next("one"), "two three"))
		q.nothingLeft(p, other)
	}
}

// A lease that was under way for longer than its TTL is not handed out.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	const ttl = 100 * time.Millisecond
	for _, variant := range []string{"handoff", "handoff:linger=0s"} {
		for _, waits := range []bool{false, true} {
			t.Run(fmt.Sprint(variant, "/waits ", waits), func(t *testing.T) {
				t.Parallel()
				trial.Calm(t, func(times int) string {
					server := redistest.Start(t)
					w := new(wire)
					p, other := w.start(t, server, variant, ttl*time.Duration(times)), trial.Start(t, server, variant, time.Hour)
					q := newQueue(t, server)
					if waits {
						lease := acquire(t, other)
						q.join("late", p)
						w.stall()
						trial.Release(t, lease)
					} else {
						w.stall()
						q.come("late", p)
					}
					time.Sleep(ttl * time.Duration(times) * 3 / 2)
					w.flow()
					s := q.any()
					if s.err != nil {
						t.Fatal(s.err)
					}
					left := time.Until(s.lease.ValidUntil())
					err := s.lease.Release(t.Context())
					if left <= 0 {
						return fmt.Sprintf("a lease was handed out that was over for %v", -left)
					}
					if err != nil {
						return err.Error()
					}
					q.nothingLeft(p, other)
					return ""
				})
			})
		}
	}
}
