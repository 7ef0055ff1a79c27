package handoff_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// deploymentCounts is what was counted of one lock on one deployment.
type deploymentCounts struct {
	name             string
	leases, forgiven int // these were held when data was lost, or when the clock was set
	stuck            int // waits that went on, or clients that did not come back, for no reason
	undecided        int // keys whose history was too long to search
	longest          time.Duration
	faults           map[string]int
	impossible       []string // histories that no lock has
}

func (s *deploymentCounts) add(more *deploymentCounts) {
	s.leases += more.leases
	s.forgiven += more.forgiven
	s.stuck += more.stuck
	s.undecided += more.undecided
	s.longest = max(s.longest, more.longest)
	s.impossible = append(s.impossible, more.impossible...)
	for kind, n := range more.faults {
		s.faults[kind] += n
	}
}

// String is a line for each thing counted.
func (s *deploymentCounts) String() string {
	text := fmt.Sprintf("%s: %d leases (%d held at a fault that ends leases), %d clients stuck\n"+
		"  free for %v at most while somebody waited; histories: %d undecided, impossible: %q",
		s.name, s.leases, s.forgiven, s.stuck, s.longest.Round(time.Millisecond), s.undecided, s.impossible)
	for _, kind := range slices.Sorted(maps.Keys(s.faults)) {
		text += fmt.Sprintf("\n  %6d × %s", s.faults[kind], kind)
	}
	return text
}

// sound says that nothing was found that no lock may do.
func (s *deploymentCounts) sound() bool { return s.stuck+len(s.impossible) == 0 }

// judge looks at each key's history, and draws an impossible one in that directory.
//
// Two faults end leases before their time, and what was held then counts as given up: a
// loss of data, and a clock of Redis that is set forward. One fault may repeat tokens: a
// clock of Redis that is set back, where the lock becomes free before it has caught up.
func (c *chaos) judge(drawings string) *deploymentCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := &deploymentCounts{stuck: int(c.inside.Load()), faults: c.faults}
	c.down = merged(c.down)
	byKey := map[string][]locktest.Operation{}
	for _, o := range c.history.Operations() {
		byKey[o.Key] = append(byKey[o.Key], o)
	}
	for key, history := range byKey {
		forgiven, passedOn := c.forgive(history)
		sum.forgiven += forgiven
		model := locktest.FencedMutex
		if c.setBack(history) {
			model = locktest.Mutex
		}
		h := holdsOf(history)
		sum.leases += len(h)
		for _, wait := range c.idle(h, history) {
			sum.longest = max(sum.longest, wait)
			if wait > longestWait {
				sum.stuck++
				c.report(key, fmt.Sprintf("a free lock was waited for for %v", wait), h, history)
			}
		}
		kept := slices.DeleteFunc(slices.Clone(history), func(o locktest.Operation) bool { return passedOn[o.Lease] })
		switch err := locktest.CheckHistory(model, kept, drawings); {
		case errors.Is(err, locktest.ErrUndecided):
			sum.undecided++
		case err != nil:
			sum.impossible = append(sum.impossible, fmt.Sprintf("key %s: %v", key, err))
			c.report(key, err.Error(), h, history)
		}
	}
	return sum
}

// longestWait is for how long a free lock may have a waiter while one fault follows
// another: a dead waiter's turn lasts for its lease; who waits looks once a second; looks
// may fail for two seconds before that is told; and a failed one is repeated after a second
// at most. A waiter who is lost waits until his process dies.
const longestWait = chaosTTL + time.Second + 2*time.Second + time.Second

// report logs what is wrong with a history: its leases, how else its operations ended, and
// the faults that bear on them.
func (c *chaos) report(key, wrong string, holds []hold, history []locktest.Operation) {
	c.Logf("%s, key %s: %s", c.name, key, wrong)
	for _, h := range holds {
		c.Logf("key %s: client %d asked at %v, had token %d from %v, valid until %v, ended by %v", key, h.Client,
			h.Call, h.Token, h.Return, h.Until, h.ended)
	}
	for _, o := range history {
		if o.Event != locktest.Acquired && o.Event != locktest.Released {
			c.Logf("key %s: client %d asked at %v, and at %v it was: %v", key, o.Client, o.Call, o.Return, o.Event)
		}
	}
	c.Logf("data was lost, or the clock set forward: %v; the clock was set back: %v; Redis did not serve: %v", c.gone,
		c.back, c.down)
}

// forgive has leases end when Redis loses its data or its clock is set forward: who had
// one then may find somebody else in. Redis may have granted it as long before its holder
// knew as a TTL is long. Its process may pass on a lease that is gone until it has looked,
// also to somebody who asked after the fault. A release that finds nothing may have been carried out before, its
// answer lost with the connection; and one that is asked again after the lease ran out
// cannot know whether the first was. It returns how many leases ended so, and those that were
// passed on when they were gone already: others may have larger tokens by then.
func (c *chaos) forgive(history []locktest.Operation) (n int, passedOn map[int]bool) {
	passedOn = map[int]bool{}
	granted := grantedBy(history)
	until := map[int]time.Duration{}
	for i, o := range history {
		if o.Event != locktest.Acquired {
			continue
		}
		for _, loss := range c.gone {
			passed := o.Call > loss.to // on, after the fault
			if granted[o.Token/handoff.MostTurns] <= loss.to && loss.from < o.Until &&
				(!passed || o.Return < loss.to+unseen) {
				history[i].Until = max(loss.from, o.Call)
				passedOn[o.Lease] = o.Call > loss.from // perhaps after the fault, which has no exact instant
				n++
				break
			}
		}
		until[o.Lease] = history[i].Until
	}
	for i, o := range history {
		inTime := o.Call < until[o.Lease]
		if o.Event == locktest.Lost && inTime || o.Event == locktest.Released && o.Return >= until[o.Lease] {
			history[i].Event = locktest.Unclear
		}
	}
	return n, passedOn
}

// grantedBy returns until when Redis had granted each lease at the latest, by its token without the last digits, in
// which the turns of a process differ. The token is Redis's clock in microseconds: a lease of a later token than
// another's was granted at most as much later, because a clock that is set forward only makes the difference larger. So
// a lease has a bound too that its process passes on after the client had given up that it was granted for.
func grantedBy(history []locktest.Operation) map[int64]time.Duration {
	granted := map[int64]time.Duration{}
	for _, o := range history {
		if o.Event == locktest.Acquired {
			at := max(o.Call, min(o.Return, o.Until-2*chaosTTL)) // an extension is of 1.5 TTL at most
			first, passed := granted[o.Token/handoff.MostTurns]
			if !passed || at < first {
				granted[o.Token/handoff.MostTurns] = at
			}
		}
	}
	var earlier time.Duration // what the clock of the history is behind Redis's, by the lease that shows the least
	for i, token := range slices.Sorted(maps.Keys(granted)) {
		clock := time.Duration(token) * time.Microsecond
		if i > 0 {
			granted[token] = min(granted[token], clock+earlier)
			earlier = min(earlier, granted[token]-clock)
		} else {
			earlier = granted[token] - clock
		}
	}
	return granted
}

// unseen is for how long a process may pass on what Redis has lost, on a busy machine.
const unseen = time.Second

// hold is a lease, from when its holder knew of it.
type hold struct {
	locktest.Operation
	ended time.Duration // until when Redis may have kept it
}

// holdsOf returns the leases as they were returned.
func holdsOf(history []locktest.Operation) (all []hold) {
	at := map[int]int{}
	for _, o := range history {
		if o.Event == locktest.Acquired {
			at[o.Lease] = len(all)
			all = append(all, hold{o, o.Until})
		}
	}
	for _, o := range history {
		switch o.Event {
		case locktest.Released, locktest.Unclear, locktest.Lost:
			h := &all[at[o.Lease]]
			h.ended = min(h.ended, o.Return)
		}
	}
	slices.SortFunc(all, func(a, b hold) int { return cmp.Compare(a.Return, b.Return) })
	return all
}

// setBack says whether Redis's clock was set back in a history's time.
func (c *chaos) setBack(history []locktest.Operation) bool {
	last := slices.MaxFunc(history, func(a, b locktest.Operation) int { return cmp.Compare(a.Return, b.Return) }).Return
	return slices.ContainsFunc(c.back, func(step span) bool { return history[0].Call <= step.to && step.from <= last })
}

// idle are the times for which a lock was free, Redis there, and there was always somebody who waited, whether he got
// it in the end or not, though perhaps none of them for long. Callers pause between two tries.
func (c *chaos) idle(holds []hold, history []locktest.Operation) (all []time.Duration) {
	var asked []span // from when to when somebody waited, whether he got it or not
	for _, o := range history {
		if o.Event == locktest.Acquired || o.Event == locktest.Failed {
			asked = append(asked, span{o.Call, o.Return + 20*time.Millisecond})
		}
	}
	for _, wait := range merged(asked) {
		since := wait.from
		for _, h := range holds {
			if h.Return > since && h.Return <= wait.to {
				all = append(all, c.serving(since, h.Return))
			}
			if h.Return <= wait.to {
				since = max(since, h.ended)
			}
		}
		if since < wait.to {
			all = append(all, c.serving(since, wait.to))
		}
	}
	return all
}

// serving is for how long Redis was there between two instants.
func (c *chaos) serving(from, to time.Duration) time.Duration {
	length := to - from
	for _, d := range c.down {
		length -= max(0, min(d.to, to)-max(d.from, from))
	}
	return max(0, length)
}

// A lock that nobody has is found although none of its callers waits for long.
func TestALockWithNobodyIsFound(t *testing.T) {
	t.Parallel()
	c := &chaos{T: t, deployment: &deployment{}}
	var history []locktest.Operation
	for at := time.Duration(0); at < 2*longestWait; at += 40 * time.Millisecond {
		history = append(history, locktest.Operation{Event: locktest.Failed, Call: at, Return: at +
			30*time.Millisecond})
	}
	if free := slices.Max(c.idle(nil, history)); free <= longestWait {
		t.Errorf("it was with nobody for %v", free)
	}
	c.down = []span{{time.Second, time.Second + longestWait}}
	if free := slices.Max(c.idle(nil, history)); free > longestWait+time.Second {
		t.Errorf("Redis was not there for %v, and the lock is said to be with nobody for %v", longestWait, free)
	}
}

// planted is a lock with a fault.
type planted struct {
	strategies.Locker
	late  time.Duration // for how much longer a lease is said to be valid
	twice bool          // a token is given to two
	deaf  bool          // some wait on although the lock is free
}

func (p *planted) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	if p.deaf && rand.IntN(50) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	lease, err := p.Locker.Acquire(ctx, key)
	if err != nil {
		return nil, err
	}
	return &plantedLease{lease.(*handoff.Lease), p}, nil
}

type plantedLease struct {
	*handoff.Lease
	*planted
}

func (l *plantedLease) FencingToken() int64 {
	if l.twice {
		return l.Lease.FencingToken() / handoff.MostTurns / 20_000 // the same for 20 ms
	}
	return l.Lease.FencingToken()
}

func (l *plantedLease) ValidUntil() time.Time { return l.Lease.ValidUntil().Add(l.late) }

// What chaos looks for it finds, in a lock that has it. TestChaos does not find it in the locks as they are.
func TestPlantedFaultsAreFound(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct {
		planted
		play  time.Duration // at a time; of who waits in vain longer than somebody may wait
		found func(*deploymentCounts) bool
	}{
		"late": {
			planted{late: 10 * chaosTTL}, time.Second, func(s *deploymentCounts) bool { return len(s.impossible) > 0 },
		},
		"token twice": {
			planted{twice: true}, time.Second, func(s *deploymentCounts) bool { return len(s.impossible) > 0 },
		},
		"deaf waiter": {
			planted{deaf: true},
			9 * time.Second,
			func(s *deploymentCounts) bool { return s.stuck > 0 && len(s.impossible) == 0 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			options := &redis.UniversalOptions{Addrs: []string{server.Addr}}
			d := &deployment{
				name: name, options: func(int) *redis.UniversalOptions { return options },
				troubles: []trouble{
					cutSome(lookAt(t, server)),
					{"pause", func(c *chaos) { c.pause(server, rand.N(50*time.Millisecond)) }},
				},
			}
			c := newChaos(t, d, func(config goredis.Config) (strategies.Locker, error) {
				inner, err := goredis.Open(trial.Variant(t, "handoff"), config)
				lock := fault.planted
				lock.Locker = inner
				return &lock, err
			})
			sum := &deploymentCounts{name: name, faults: map[string]int{}}
			for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
				c.play(fault.play)
				s := c.judge(t.TempDir())
				sum.add(s)
				if fault.found(s) {
					return
				}
			}
			t.Errorf("the verdict of a lock with this fault: %s", sum)
		})
	}
}
