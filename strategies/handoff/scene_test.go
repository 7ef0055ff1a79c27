package handoff_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// pair is two processes, of which a is on a wire, and a third that has the lock at first. In a the waiters are a1, a2
// and so on, in the order of arrival; in b they are b1 and so on. The slot of a comes first.
type pair struct {
	*queue
	*wire
	first    *holding
	h, a, b  trial.Process
	answered bool // a lost command is executed, but its answer is lost
}

func newPair(t *testing.T, variant string, ttl time.Duration, inA, inB int) *pair {
	t.Helper()
	return newPairOn(t, redistest.Start(t), variant, ttl, inA, inB)
}

func newPairOn(t *testing.T, server *redistest.Server, variant string, ttl time.Duration, inA, inB int) *pair {
	t.Helper()
	p := &pair{queue: newQueue(t, server), wire: new(wire), h: trial.Start(t, server, variant, time.Hour)}
	p.a, p.b = p.start(t, server, variant, ttl), trial.Start(t, server, variant, ttl)
	p.first = acquire(t, p.h)
	for n := range inA {
		p.join(fmt.Sprint("a", n+1), p.a)
	}
	for n := range inB {
		p.join(fmt.Sprint("b", n+1), p.b)
	}
	return p
}

// done releases the last lease.
func (p *pair) done(last *holding) {
	p.t.Helper()
	trial.Release(p.t, last)
	p.nothingLeft(p.h, p.a, p.b)
}

// play runs a scene, of which each word is a step:
//
//	+a1     a1 asks, and waits, also at Redis
//	?a1     a1 asks
//	-a1     a1 gives up
//	a1      the holder releases, and it is the turn of a1; * is the turn of anybody
//	>a1     it is the turn of a1, since the holder has lost the lock
//	=2      two places are queued at Redis
//	!DEL_x  Redis carries out DEL x
//	~leave  the next leave of a is lost, or its answer
//	.       that has happened
//	21ms    so much time passes
func (p *pair) play(scene string) {
	p.t.Helper()
	held := p.first
	var happened <-chan struct{}
	ask := func(ask func(string, trial.Process), who string) {
		ask(who, map[byte]trial.Process{'a': p.a, 'b': p.b, 'h': p.h}[who[0]])
	}
	turn := func(who string) *holding {
		p.t.Helper()
		if who != "*" {
			return p.next(who)
		}
		s := p.any()
		if s.err != nil {
			p.t.Fatalf("%s got: %v", s.who, s.err)
		}
		return s.lease
	}
	for word := range strings.FieldsSeq(scene) {
		pause, err := time.ParseDuration(word)
		switch rest := word[1:]; {
		case err == nil:
			time.Sleep(pause)
		case word[0] == '+':
			ask(p.join, rest)
		case word[0] == '?':
			ask(p.come, rest)
		case word[0] == '-':
			p.leave(rest)
		case word[0] == '>':
			last := held
			held = turn(rest)
			notHeld(p.t, last)
		case word[0] == '=':
			poll.Until(p.t, rest+" are queued", func() bool { return fmt.Sprint(p.length()) == rest })
		case word[0] == '!':
			command := strings.ReplaceAll(rest, "_", " ")
			if command == "FLUSHALL" || command == "DEL "+lock {
				ends(p.t, p.h)
			}
			p.do(command)
		case word[0] == '~':
			words := command(rest)
			if handoff.Scripts[rest] != "" {
				words = script(rest)
			}
			happened = p.breaks(words, p.answered)
		case word == ".":
			<-happened
		default:
			trial.Release(p.t, held)
			held = turn(word)
		}
	}
	p.done(held)
}

// The callers that wait in a process when it gets the lease get it in order, for as many turns as batch or linger
// allows. Later callers wait for those of the other process. A caller that gives up is skipped, wherever it waits;
// the process keeps its slot for the others. A process whose last waiter gives up leaves the queue at once. A key
// that Redis loses or a command that it refuses costs no waiter its turn.
func TestScenes(t *testing.T) {
	t.Parallel()
	const late = "a1 +a4 a2 a3 b1 +a5 +b4 b2 b3 a4 a5 b4"
	for _, test := range []struct {
		variants []string
		inA, inB int
		scene    string
	}{
		{[]string{"handoff:linger=1h", "cohort"}, 3, 3, late},
		{[]string{"cohort:batch=1"}, 5, 3, "a1 b1 a2 b2 a3 b3 a4 a5"},
		{[]string{"cohort:batch=2"}, 5, 3, "a1 a2 b1 b2 a3 a4 b3 a5"},
		{[]string{"handoff:linger=20ms"}, 2, 2, "a1 21ms b1 21ms a2 b2"},
		// A caller that gets a free lock passes it to the callers that came while it asked, and not to later ones.
		{every[2:], 0, 0, "+h1 +b1 +h2 b1 h1 h2"},
		{slotKinds[1:], 5, 1, "-a1 -a4 a2 a3 a5 b1"},
		{every[2:], 5, 1, "-a1 =2 a2 -a3 -a5 a4 b1"}, // a1 added the slot
		{slotKinds, 2, 1, "-a1 -a2 =1 b1"},
		// On a server that no longer lets a script publish, waiters find the free lock by a check.
		{slotKinds[:1], 2, 0, "!ACL_SETUSER_default_-spublish a1 a2"},
		// A caller that queues while another caller of its process gets the lock is in the queue, and the process checks it
		// when the queue is lost.
		{slotKinds[1:], 1, 0, "!DEL_trial:key ?a2 >a1 =1 !DEL_trial:key:handoff !CLIENT_KILL_TYPE_pubsub a2"},
		{every, 1, 1, "!DEL_trial:key:handoff * *"},
		{every, 1, 1, "!DEL_trial:key >* *"},
		{every, 1, 1, "!FLUSHALL >* *"},
	} {
		t.Run(test.scene, func(t *testing.T) {
			each(t, test.variants, func(t *testing.T, variant string) {
				newPair(t, variant, time.Hour, test.inA, test.inB).play(test.scene)
			})
		})
	}
}

// script is the text of a script's call on the wire.
func script(name string) []byte { return []byte(handoff.Scripts[name]) }

// If any command is lost with its connection, executed by Redis or not, no client loses the lock or its turn, and no
// key is left.
func TestLostCommands(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		variants []string
		scene    string
	}{
		// It is not known whether a waiter is queued. In the end it is queued once, before later waiters.
		{slotKinds, "~queue +a1 . +a2 +b1 a1 a2 b1"},
		{slotKinds[1:], "+a1 +a2 ~rpushx +a3 . +a4 =4 a1 a2 a3 a4"}, // a knows that others are queued
		{every, "+a1 a1 +b1 ~release b1 ."},
		// The release queues the process again; its waiter gets its turn after the other process.
		{slotKinds[:1], "+a1 a1 +b1 +a2 ~release b1 . =1 a2"},
		// A cancelled wait whose leave Redis did not receive leaves nothing behind.
		{slotKinds[:1], "+a1 ~leave -a1 ."},
	} {
		t.Run(test.scene, func(t *testing.T) {
			onOne(t, test.variants, func(t *testing.T, server *redistest.Server, variant string) {
				for _, answered := range []bool{false, true} {
					p := newPairOn(t, server, variant, time.Hour, 0, 0)
					p.answered = answered
					p.play(test.scene)
					for _, process := range []trial.Process{p.a, p.b} { // and the lock works as before
						trial.Release(t, acquire(t, process))
					}
					p.nothingLeft(p.h, p.a, p.b)
				}
			})
		})
	}
}
