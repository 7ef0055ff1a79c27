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

// deploymentCounts contains the results of the chaos test for one lock on one deployment.
type deploymentCounts struct {
	name             string
	leases, forgiven int // a forgiven lease was held when data was lost, or when the clock was set forward
	stuck            int // waits that did not end, or clients that did not return, without a reason
	undecided        int // keys whose history was too long to search
	longest          time.Duration
	faults           map[string]int
	impossible       []string // histories that no lock can have
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

func (s *deploymentCounts) String() string {
	text := fmt.Sprintf("%s: %d leases (%d held at a fault that ends leases), %d clients stuck\n"+
		"  free for at most %v while a client waited; histories: %d undecided, impossible: %q",
		s.name, s.leases, s.forgiven, s.stuck, s.longest.Round(time.Millisecond), s.undecided, s.impossible)
	for _, kind := range slices.Sorted(maps.Keys(s.faults)) {
		text += fmt.Sprintf("\n  %6d × %s", s.faults[kind], kind)
	}
	return text
}

func (s *deploymentCounts) sound() bool { return s.stuck+len(s.impossible) == 0 }

// judge checks the history of each key and returns the results. If a history is impossible, judge writes a drawing of
// it to the directory drawings.
//
// Two faults end leases early: a loss of data, and setting Redis's clock forward. The leases held at that time count as
// given up. If Redis's clock is set back, tokens may repeat, so their order is not checked for that history.
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
		forgiven, passedOn := c.endAffectedLeases(history)
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
				c.report(key, fmt.Sprintf("a client waited for a free lock for %v", wait), h, history)
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

// longestWait is the longest time for which a lock may be free while a client waits. It is the sum of four delays,
// because several faults can cause them one after the other: the lease of a dead waiter (chaosTTL), the interval
// between two checks (1 s), the repetition of failed checks (2 s), and the longest pause before a repetition (1 s).
const longestWait = chaosTTL + time.Second + 2*time.Second + time.Second

// report logs wrong, the fault in the history of key, together with the leases and failed operations of key and the
// injected faults.
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

// endAffectedLeases ends the leases that a loss of data or a forward step of Redis's clock affects, because another
// client may then get the lock. n is the number of these leases.
//
// Redis may have granted a lease up to a TTL before its holder learned of it. A process may pass on a lost lease until
// its next check, even to a client that requested the lock after the fault. passedOn contains the leases that were
// passed on after their loss. The caller must ignore these leases, because other leases may have larger tokens by then.
//
// The result of a release becomes unclear in two cases. The release may have found no lock, because an earlier try with
// a lost reply may have released it. Or the release may have ended after the lease had expired.
func (c *chaos) endAffectedLeases(history []locktest.Operation) (n int, passedOn map[int]bool) {
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

// grantedBy returns the latest time at which Redis can have granted each lease. The keys of the map are fencing tokens
// divided by MostTurns, which are times of Redis's clock in µs.
//
// The difference between two keys is at least the time between their grants, because setting the clock forward only
// increases it. That difference also limits the time of a grant whose first client gave up before the process passed
// the lease on.
func grantedBy(history []locktest.Operation) map[int64]time.Duration {
	granted := map[int64]time.Duration{}
	for _, o := range history {
		if o.Event == locktest.Acquired {
			at := max(o.Call, min(o.Return, o.Until-2*chaosTTL)) // an extension is at most 1.5 TTL
			first, passed := granted[o.Token/handoff.MostTurns]
			if !passed || at < first {
				granted[o.Token/handoff.MostTurns] = at
			}
		}
	}
	var earlier time.Duration // the smallest lag of the history's clock behind Redis's, over all leases
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

// unseen is the time for which a process on a busy machine may still pass on a lease after Redis has lost it.
const unseen = time.Second

// hold is a lease in a history. It begins when the holder's Acquire returned.
type hold struct {
	locktest.Operation
	ended time.Duration // the latest end at Redis
}

// holdsOf returns the leases of a history in the order in which Acquire returned them.
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

// setBack reports whether Redis's clock was set back during the history, after which tokens may decrease.
func (c *chaos) setBack(history []locktest.Operation) bool {
	last := slices.MaxFunc(history, func(a, b locktest.Operation) int { return cmp.Compare(a.Return, b.Return) }).Return
	return slices.ContainsFunc(c.back, func(step span) bool { return history[0].Call <= step.to && step.from <= last })
}

// idle returns the lengths of all periods in which the lock was free, Redis served commands, and clients waited. A gap
// of at most 20 ms between two waits does not end a period, because a caller pauses between two tries.
func (c *chaos) idle(holds []hold, history []locktest.Operation) (all []time.Duration) {
	var asked []span // the times of all waits, with or without success
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

// serving returns how long Redis served commands between from and to.
func (c *chaos) serving(from, to time.Duration) time.Duration {
	length := to - from
	for _, d := range c.down {
		length -= max(0, min(d.to, to)-max(d.from, from))
	}
	return max(0, length)
}

// The history contains only failed waits of 30 ms, one every 40 ms, over twice longestWait. idle must report a period
// of more than longestWait in which the lock was free. If Redis is down for part of the time, that part must not count.
func TestLockWithoutHolderIsFound(t *testing.T) {
	t.Parallel()
	c := &chaos{T: t, deployment: &deployment{}}
	var history []locktest.Operation
	for at := time.Duration(0); at < 2*longestWait; at += 40 * time.Millisecond {
		history = append(history, locktest.Operation{Event: locktest.Failed, Call: at, Return: at +
			30*time.Millisecond})
	}
	if free := slices.Max(c.idle(nil, history)); free <= longestWait {
		t.Errorf("the lock had no holder for %v", free)
	}
	c.down = []span{{time.Second, time.Second + longestWait}}
	if free := slices.Max(c.idle(nil, history)); free > longestWait+time.Second {
		t.Errorf("Redis did not serve for %v, but the verdict reports a lock without a holder for %v", longestWait, free)
	}
}

// planted wraps a correct lock and adds one fault, which the chaos test must find.
type planted struct {
	strategies.Locker
	late  time.Duration // by how much a lease overstates its validity
	twice bool          // two leases get the same token
	deaf  bool          // some waiters keep waiting although the lock is free
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

// Each of three faults is planted in a correct lock: leases that overstate their validity, repeated tokens, and waiters
// that ignore a free lock. The verdict of the chaos test must report each.
func TestPlantedFaultsAreFound(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct {
		planted
		play  time.Duration // per round; for a deaf waiter longer than the longest allowed wait
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
