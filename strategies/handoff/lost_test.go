package handoff_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// script is how one is asked for on the wire.
func script(name string) []byte { return []byte(handoff.Scripts[name]) }

// losses are what goes on when one command of p is lost, or its answer: lose has that be the next with those
// words in it.
var losses = map[string]struct {
	variants []string
	play     func(t *testing.T, l *wired, lose func(words []byte) (happened chan struct{}))
}{
	// Whether somebody is queued is not known: he is in the end, once, before who comes later.
	"queue": {places, func(t *testing.T, l *wired, lose func([]byte) chan struct{}) {
		first := acquire(t, l.other)
		happened := lose(script("queue"))
		l.join("victim", l.p)
		<-happened
		l.join("later", l.p)
		l.join("other", l.other)
		trial.Release(t, l.turns(first, "victim later other"))
	}},
	"queue behind others": {places[1:], func(t *testing.T, l *wired, lose func([]byte) chan struct{}) {
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
	"release": {every, func(t *testing.T, l *wired, lose func([]byte) chan struct{}) {
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
	"release and queue": {places[:1], func(t *testing.T, l *wired, lose func([]byte) chan struct{}) {
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
	// A wait that was given up and whose end Redis has not heard of leaves nothing behind.
	"leave": {places[:1], func(t *testing.T, l *wired, lose func([]byte) chan struct{}) {
		first := acquire(t, l.other)
		l.join("gone", l.p)
		happened := lose(script("leave"))
		l.leave("gone")
		<-happened
		trial.Release(t, first)
	}},
}

// Whatever is lost with a connection, Redis having carried it out or not: nobody loses the lock by it, or
// his turn, and nothing is left.
func TestLostCommands(t *testing.T) {
	t.Parallel()
	for name, test := range losses {
		t.Run(name, func(t *testing.T) {
			onOne(t, test.variants, func(t *testing.T, server *redistest.Server, variant string) {
				for _, answered := range []bool{false, true} {
					l := newWired(t, server, variant, time.Hour)
					test.play(t, l, func(words []byte) chan struct{} { return l.breaks(words, answered) })
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
