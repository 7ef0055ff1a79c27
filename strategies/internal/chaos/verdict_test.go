package chaos

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/lockbench/lockbench/strategies/locktest"
)

// judge looks at each key's history.
func (c *chaos) judge(strict bool) {
	byKey := map[string][]locktest.Operation{}
	for _, o := range c.history.Operations() {
		byKey[o.Key] = append(byKey[o.Key], o)
	}
	var acquired int
	var longest time.Duration
	c.down = merged(c.down)
	for key, history := range byKey {
		c.forgive(history)
		switch err := locktest.CheckHistory(locktest.FencedMutex, history, ""); {
		case errors.Is(err, locktest.ErrUndecided):
			c.Logf("%s, key %s: %v", c.name, key, err)
		case err != nil:
			c.Errorf("%s, key %s: %v", c.name, key, err)
		}
		stuck, n := c.stuck(history)
		longest = max(longest, stuck)
		acquired += n
	}
	c.Logf("%s: %d acquisitions, free for %v at most while somebody waited; %v", c.name, acquired, longest.Round(time.Millisecond), c.did)
	limit := ttl + time.Second
	if !strict {
		limit += 3 * time.Second // the machine may be busy
	}
	if longest > limit {
		c.Errorf("%s: a lock was free for %v while somebody waited for it", c.name, longest)
	}
	if acquired < fewest {
		c.Errorf("%s: only %d acquisitions", c.name, acquired)
	}
}

// merged are the same outages, without overlaps and in order.
func merged(all []outage) (apart []outage) {
	slices.SortFunc(all, func(a, b outage) int { return cmp.Compare(a.from, b.from) })
	for _, o := range all {
		if last := len(apart) - 1; last >= 0 && o.from <= apart[last].to {
			apart[last].to = max(apart[last].to, o.to)
		} else {
			apart = append(apart, o)
		}
	}
	return apart
}

// forgive has leases end when Redis loses its data: who had one then, or got one before
// Redis was back, from a process that had, may find somebody else in. A release that finds
// nothing may have been carried out before, its answer lost with the connection.
func (c *chaos) forgive(history []locktest.Operation) {
	until := map[int]time.Duration{}
	for i, o := range history {
		if o.Event != locktest.Acquired {
			continue
		}
		for _, loss := range c.gone {
			if o.Return < loss.to && loss.from < o.Until {
				history[i].Until = max(loss.from, o.Return)
				break
			}
		}
		until[o.Lease] = history[i].Until
	}
	for i, o := range history {
		if o.Event == locktest.Lost && o.Call < until[o.Lease] {
			history[i].Event = locktest.Unclear
			c.count("release in doubt")
		}
	}
}

// stuck is the longest time for which a lock was free, Redis there, and somebody waited
// who got it in the end; and how many got it.
func (c *chaos) stuck(history []locktest.Operation) (longest time.Duration, acquired int) {
	var got []locktest.Operation
	end := map[int]time.Duration{} // of the leases
	for _, o := range history {
		switch o.Event {
		case locktest.Acquired:
			got = append(got, o)
			end[o.Lease] = o.Until
		case locktest.Released, locktest.Unclear, locktest.Lost:
			end[o.Lease] = min(end[o.Lease], o.Return)
		}
	}
	slices.SortFunc(got, func(a, b locktest.Operation) int { return cmp.Compare(a.Return, b.Return) })
	var free time.Duration // since when
	for _, o := range got {
		since := max(free, o.Call)
		waited := o.Return - since
		for _, d := range c.down {
			waited -= max(0, min(d.to, o.Return)-max(d.from, since))
		}
		longest = max(longest, waited)
		free = max(free, end[o.Lease])
	}
	return longest, len(got)
}
