package handoff_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// loss is a process p on the wire, and another, of a variant.
type loss struct {
	*queue
	*wire
	p, other trial.Process
}

// script is how one is asked for on the wire.
func script(name string) []byte { return []byte(handoff.Scripts[name]) }

// losses are what goes on when one command of p is lost, or its answer: lose has that be the next with those
// words in it.
var losses = map[string]struct {
	variants []string
	play     func(t *testing.T, l *loss, lose func(words []byte) (happened chan struct{}))
}{
	"acquire": {both, func(t *testing.T, l *loss, lose func([]byte) chan struct{}) {
		happened := lose(command("set"))
		lease := acquire(t, l.p)
		<-happened
		isHeld(t, l.other)
		trial.Release(t, lease)
	}},
	"try": {places[:1], func(t *testing.T, l *loss, lose func([]byte) chan struct{}) {
		happened := lose(command("set"))
		lease, err := try(t.Context(), t, l.p, "key")
		<-happened
		if err != nil {
			t.Fatal(err)
		}
		isHeld(t, l.other)
		trial.Release(t, lease)
	}},
	// Whether somebody is queued is not known: he is in the end, once, before who comes later.
	"queue": {places, func(t *testing.T, l *loss, lose func([]byte) chan struct{}) {
		first := acquire(t, l.other)
		happened := lose(script("queue"))
		l.join("victim", l.p)
		<-happened
		l.join("later", l.p)
		l.join("other", l.other)
		trial.Release(t, l.turns(first, "victim later other"))
	}},
	"queue behind others": {places[1:], func(t *testing.T, l *loss, lose func([]byte) chan struct{}) {
		first := acquire(t, l.other)
		l.join("one", l.p)
		l.join("two", l.p) // now it knows that others are queued
		happened := lose(command("rpushx"))
		l.join("victim", l.p)
		<-happened
		l.join("later", l.p)
		if n := l.length(); n != 4 {
			t.Errorf("four have %d places", n)
		}
		trial.Release(t, l.turns(first, "one two victim later"))
	}},
	// A release whose answer is lost was one, also if others have had the lock since.
	"release": {every, func(t *testing.T, l *loss, lose func([]byte) chan struct{}) {
		lease := acquire(t, l.p)
		l.join("other", l.other)
		happened := lose(script("release"))
		released := make(chan error, 1)
		go func() { released <- lease.Release(t.Context()) }()
		<-happened
		trial.Release(t, l.next("other"))
		if err := <-released; err != nil {
			t.Errorf("a release whose answer was lost returned %v", err)
		}
		notHeld(t, lease)
	}},
	// So it is with one that queues the process again; who waits in it has his turn after the other.
	"release and queue": {places[:1], func(t *testing.T, l *loss, lose func([]byte) chan struct{}) {
		lease := acquire(t, l.p)
		l.join("other", l.other)
		l.come("neighbour", l.p)
		l.waiting(l.p, 1)
		happened := lose(script("release"))
		trial.Release(t, lease)
		<-happened
		held := l.next("other")
		poll.Until(t, "the process is queued", func() bool { return l.length() == 1 })
		trial.Release(t, l.turns(held, "neighbour"))
	}},
	"extend": {places[:1], func(t *testing.T, l *loss, lose func([]byte) chan struct{}) {
		lease := acquire(t, l.p)
		happened := lose(script("extend"))
		extend(t, lease, 2*time.Hour)
		<-happened
		if left := time.Until(lease.ValidUntil()); left < 110*time.Minute || left > 2*time.Hour {
			t.Errorf("it is valid for %v then", left)
		}
		isHeld(t, l.other)
		trial.Release(t, lease)
	}},
	// A wait that was given up and whose end Redis has not heard of leaves nothing behind.
	"leave": {places[:1], func(t *testing.T, l *loss, lose func([]byte) chan struct{}) {
		first := acquire(t, l.other)
		l.join("gone", l.p)
		happened := lose(script("leave"))
		l.leave("gone")
		<-happened
		trial.Release(t, first)
	}},
	// A message that is lost with the connection on which it came is missed by nobody: what
	// has become of who waits is asked at once.
	"message": {places, func(t *testing.T, l *loss, _ func([]byte) chan struct{}) {
		lease := acquire(t, l.other)
		l.join("one", l.p)
		l.join("two", l.p)
		l.join("three", l.other)
		happened := l.breaks([]byte("smessage"), whenTold)
		trial.Release(t, lease)
		<-happened
		trial.Release(t, l.turns(l.next("one"), "two three"))
	}},
}

// Whatever is lost with a connection, Redis having carried it out or not: nobody loses the lock by it, or
// his turn, and nothing is left.
func TestLostCommands(t *testing.T) {
	t.Parallel()
	for name, test := range losses {
		t.Run(name, func(t *testing.T) {
			onOne(t, test.variants, func(t *testing.T, server *redistest.Server, variant string) {
				for _, when := range []moment{beforeRedis, whenAnswered} {
					l := &loss{queue: newQueue(t, server), wire: new(wire)}
					l.p = l.wire.start(t, server, variant, time.Hour)
					l.other = trial.Start(t, server, variant, time.Hour)
					test.play(t, l, func(words []byte) chan struct{} { return l.breaks(words, when) })
					l.nothingLeft(l.p, l.other)
					for _, p := range []trial.Process{l.p, l.other} { // and everything goes on as ever
						trial.Release(t, acquire(t, p))
					}
					l.nothingLeft(l.p, l.other)
				}
			})
		})
	}
}

// An extension that is not answered while its caller waits leaves the lease valid until when it was:
// it can be extended again, and released.
func TestUnansweredExtension(t *testing.T) {
	t.Parallel()
	server, w := redistest.Start(t), new(wire)
	p := w.start(t, server, "handoff", time.Hour)
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
	if extend(t, lease, 2*time.Hour); !lease.ValidUntil().After(until) {
		t.Errorf("extended again, it is valid for %v", time.Until(lease.ValidUntil()))
	}
	trial.Release(t, lease)
	newQueue(t, server).nothingLeft(p)
}

// A lease that was under way for longer than its TTL is not handed out.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	for _, waits := range []bool{false, true} {
		t.Run(fmt.Sprint("waits ", waits), func(t *testing.T) {
			onOne(t, places, func(t *testing.T, server *redistest.Server, variant string) {
				trial.Calm(t, func(times int) string {
					ttl := 100 * time.Millisecond * time.Duration(times)
					w := new(wire)
					p, other := w.start(t, server, variant, ttl), trial.Start(t, server, variant, time.Hour)
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
					time.Sleep(ttl * 3 / 2)
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
		})
	}
}

// What was sent by a call that was given up, and arrives late, takes the lock for a moment at most, and not
// for the hour that its lease would have lasted; and a late extension does not undo a later one.
func TestLateCommands(t *testing.T) {
	t.Parallel()
	for what, words := range map[string][]byte{
		"wait": command("set"), "try": command("set"), "extend": script("extend"),
	} {
		t.Run(what, func(t *testing.T) {
			onOne(t, both, func(t *testing.T, server *redistest.Server, variant string) {
				w := new(wire)
				p, other := w.start(t, server, variant, time.Hour), trial.Start(t, server, variant, time.Hour)
				trial.Calm(t, func(times int) string {
					short := time.Duration(times) * 500 * time.Millisecond
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					var lease *holding
					do := func() error {
						got, err := p.Locker.Acquire(ctx, "key")
						lease, err = enter(t, p, "who waits", "key", got, err)
						return err
					}
					switch what {
					case "try":
						do = func() (err error) { lease, err = try(ctx, t, p, "key"); return err }
					case "extend":
						lease = acquire(t, p)
						do = func() error { return lease.Extend(ctx, short) }
					}
					w.keep()
					done := make(chan error, 1)
					go func() { done <- do() }()
					poll.Until(t, "it is sent", func() bool { return w.sent(words) })
					packets := w.Snap()
					cancel()
					err := <-done // unless it was quick to go another way
					if what != "extend" && err == nil {
						released(t, lease)
					}
					if what != "extend" {
						free(t, other, "key") // what it owed is paid
					} else if err := lease.Extend(t.Context(), 20*time.Minute); err != nil {
						return err.Error()
					}
					if err := packets.Deliver(); err != nil {
						t.Fatalf("what came late was not answered: %v", err)
					}
					if what == "extend" {
						time.Sleep(short + 10*time.Millisecond)
						isHeld(t, other)
						released(t, lease)
					}
					free(t, other, "key")
					return ""
				})
			})
		})
	}
}

// A lock that was granted while the answer was lost is freed when Redis can be reached
// again, also when whoever asked has been told of the outage, and when Redis refuses at first to free it.
func TestOutageLeavesNoOwner(t *testing.T) {
	t.Parallel()
	for _, refuses := range []bool{false, true} {
		t.Run(fmt.Sprint("refuses ", refuses), func(t *testing.T) { outageLeavesNoOwner(t, refuses) })
	}
}

func outageLeavesNoOwner(t *testing.T, refuses bool) {
	onOne(t, both, func(t *testing.T, server *redistest.Server, variant string) {
		w := new(wire)
		p, other := w.start(t, server, variant, time.Hour), trial.Start(t, server, variant, time.Hour)
		q := newQueue(t, server)
		w.Mute()
		q.come("unheard", p)
		poll.Until(t, "Redis has granted it", func() bool { return q.server.Exists(t.Context(), lock).Val() > 0 })
		if refuses {
			q.do("CONFIG SET min-replicas-to-write 1")
			w.Snap()
			refused := func() bool { return strings.Contains(q.server.Info(q.ctx, "errorstats").Val(), "NOREPLICAS") }
			poll.Until(t, "it is back, and refused", refused)
			q.cancel["unheard"]()
		} else {
			w.Block(true)
			w.Snap()
		}
		if s := q.any(); s.err == nil {
			t.Error("an outage was not told")
		}
		w.Block(false)
		if refuses {
			if n := q.server.Exists(q.ctx, lock).Val(); n != 1 {
				t.Error("a server that takes no writes has freed it")
			}
			q.do("CONFIG SET min-replicas-to-write 0")
		}
		free(t, other, "key")
		q.nothingLeft(p, other)
	})
}

// When Redis's clock has been set forward, a grant that comes late is not believed to be a
// lease that lasts.
func TestLateGrantAfterTheClockWasSet(t *testing.T) {
	each(t, both, func(t *testing.T, variant string) {
		server, clock := redistest.StartSettable(t)
		w := new(wire)
		h, other := trial.Start(t, server, variant, time.Hour), trial.Start(t, server, variant, time.Hour)
		p := w.start(t, server, variant, time.Second)
		q := newQueue(t, server)
		first := acquire(t, h)
		q.join("late", p)
		clock.Set(30 * time.Second)
		time.Sleep(1500 * time.Millisecond) // it looks again
		w.stall()
		_ = first.Release(t.Context()) // where it has not run out by Redis's clock
		poll.Until(t, "the waiter's lease has run out", func() bool {
			lease, err := try(t.Context(), t, other, "key")
			if err == nil {
				first = lease
			}
			return err == nil
		})
		w.flow()
		time.Sleep(300 * time.Millisecond)
		select {
		case <-q.served: // it may have the lock only where it could not rely on it
			q.come("late", p)
		default:
		}
		held := q.turns(first, "late")
		_ = held.Release(t.Context()) // of a second
	})
}
