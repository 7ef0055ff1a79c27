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

// pair is a test setup with three processes: h, a and b. h holds the lock first. The commands of a go through a wire,
// on which the test can break connections. The waiters of a are named a1, a2 and so on in the order of arrival, and
// those of b are named b1, b2 and so on. All initial waiters of a arrive before those of b.
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

// done releases the last lease and checks that Redis has no keys and that no process has a lease, waiter, slot or
// pending release.
func (p *pair) done(last *holding) {
	p.t.Helper()
	trial.Release(p.t, last)
	p.nothingLeft(p.h, p.a, p.b)
}

// play runs a scene. Each word of the scene is a step:
//
//	+a1     a1 requests the lock, and waits until Redis has confirmed its slot
//	?a1     a1 requests the lock
//	-a1     a1 gives up
//	a1      the holder releases, and a1 must get the lock next; * allows any waiter
//	>a1     a1 must get the lock, because the holder has lost it
//	=2      wait until two slots are queued at Redis
//	!DEL_x  Redis executes DEL x
//	~leave  process a's next call of the script leave is lost, or the reply to that call
//	.       wait until that loss has happened
//	21ms    pause for this time
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

// Callers that are waiting when their process gets a lease get it in order, for as many turns as batch or linger
// allows. Callers that arrive later wait until the other process has had its turn. A caller that gives up is skipped,
// wherever it waits, and the process keeps its slot for its other callers. When the last waiter of a process gives up,
// the process leaves the queue at once. If Redis loses a key or refuses a command, every waiter still gets its turn.
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
		// A caller that gets a free lock passes it on to the callers that arrived during its request, but not to later ones.
		{every[2:], 0, 0, "+h1 +b1 +h2 b1 h1 h2"},
		{slotKinds[1:], 5, 1, "-a1 -a4 a2 a3 a5 b1"},
		{every[2:], 5, 1, "-a1 =2 a2 -a3 -a5 a4 b1"}, // a1 added the slot
		{slotKinds, 2, 1, "-a1 -a2 =1 b1"},
		// The server no longer allows scripts to publish, so waiters find the free lock by a check.
		{slotKinds[:1], 2, 0, "!ACL_SETUSER_default_-spublish a1 a2"},
		// a2 requests the lock while a1 of the same process gets it. The slot of a2 must still be queued, and a check must
		// find that Redis has lost the queue.
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

// script returns the hash of the named script. A test finds the calls of a script on the wire by this hash.
func script(name string) []byte { return []byte(handoff.Scripts[name]) }

// A connection breaks at a command, before or after Redis has executed it. No client may lose the lock or its turn, and
// no key may be left.
func TestLostCommands(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		variants []string
		scene    string
	}{
		// The process does not know whether its waiter is queued. The waiter must be queued once, before later waiters.
		{slotKinds, "~queue +a1 . +a2 +b1 a1 a2 b1"},
		{slotKinds[1:], "+a1 +a2 ~rpushx +a3 . +a4 =4 a1 a2 a3 a4"}, // a knows that others are queued
		{every, "+a1 a1 +b1 ~release b1 ."},
		// Releasing a1 also puts process a back in the queue, behind b, so b1 gets the lock before a2.
		{slotKinds[:1], "+a1 a1 +b1 +a2 ~release b1 . =1 a2"},
		// A wait is cancelled. Redis does not receive the leave script, or its reply is lost. No entry may be left in the
		// queue.
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
