package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/token"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

// lease is a claim that has won a quorum.
type lease struct {
	locker *Locker
	claim  *claim
	until  map[*node]*validity.Until // until when each granting node keeps the lock, minus drift
	stop   context.CancelFunc        // ends the renewals; nil if there are none
}

func newLease(l *Locker, c *claim) *lease {
	held := &lease{locker: l, claim: c, until: map[*node]*validity.Until{}}
	for _, n := range c.granted {
		held.until[n] = new(validity.Until)
		held.until[n].Set(c.start.Add(Validity(c.ttl, 0, l.options.Drift)))
	}
	if l.options.Extend != OnCall {
		held.renew()
	}
	return held
}

// renew starts a goroutine that extends the lease every TTL/3 until its release, its loss, or Close.
func (held *lease) renew() {
	l := held.locker
	ctx, stop := context.WithCancel(l.undoing)
	held.stop = stop
	l.renewals.Go(func() {
		for err := error(nil); !errors.Is(err, strategies.ErrNotHeld); {
			pause.Plain(ctx.Done(), held.claim.ttl/3)
			if ctx.Err() != nil {
				return
			}
			err = held.Extend(ctx, held.claim.ttl)
		}
	})
}

// ValidUntil returns the instant until which a quorum keeps the lock: the instant before the first command of the
// acquire or of the last extension was sent, plus the TTL minus drift. It is safe for concurrent use.
func (held *lease) ValidUntil() time.Time {
	var ends []time.Time
	for _, until := range held.until {
		ends = append(ends, until.Get())
	}
	slices.SortFunc(ends, func(a, b time.Time) int { return b.Compare(a) })
	return ends[held.locker.quorum()-1]
}

// Release frees all nodes concurrently. It waits for all replies until the node timeout ends. If a quorum may still
// confirm the release, it then waits up to a second longer. It never waits longer than 0.2 s after the end of ctx.
// Nodes that do not reply are freed in the background. ErrNotHeld means that fewer than a quorum of the nodes still had
// the lock.
func (held *lease) Release(ctx context.Context) error {
	l := held.locker
	if held.stop != nil {
		held.stop()
	}
	p := l.ask(ctx, held.claim.reached, held.claim.timeout, l.settled,
		func(ctx context.Context, n *node) (bool, error) {
			return l.free(ctx, n, held.claim, held.remains(n))
		}, nil)
	return l.verdict("release", held.claim, p.tally)
}

// remains returns the longest time for which a node may still keep the lock.
func (held *lease) remains(n *node) time.Duration {
	ttl := held.claim.ttl
	if until := held.until[n]; until != nil {
		ttl = max(ttl, time.Until(until.Get()))
	}
	return ttl
}

// Extend renews the lease on the nodes that granted it, and fails unless a quorum of the nodes still has the lock.
// After an error the lease ends at its previous end or ttl after the call, whichever is earlier, because some nodes may
// have executed the extension. A node that has not replied may execute the extension even after a later call of Extend.
// On that node the later call therefore prolongs the lease by at most the ttl of the earlier call.
func (held *lease) Extend(ctx context.Context, ttl time.Duration) error {
	l := held.locker
	ttl = ttl.Truncate(time.Millisecond)
	if err := l.options.suits(ttl); err != nil {
		return fmt.Errorf("extend %q: %w", held.claim.name, err)
	}
	start := time.Now()
	p := l.ask(ctx, held.claim.granted, l.options.timeout(ttl), l.settled,
		func(ctx context.Context, n *node) (bool, error) {
			answer := held.until[n].Extending(start, Validity(ttl, 0, l.options.Drift))
			renewed, err := call(ctx, n, func() (bool, error) {
				if l.options.Extend == Again {
					return n.client.SetNX(ctx, held.claim.name, held.claim.token, ttl).Result()
				}
				return token.Extend(ctx, n.client, held.claim.name, held.claim.token, ttl.Milliseconds())
			})
			answer(renewed, indeterminate.MayHaveRun(err))
			return renewed, err
		}, nil)
	err := l.verdict("extend", held.claim, p.tally)
	if left := Validity(ttl, time.Since(start), l.options.Drift); err == nil && left < max(l.options.MinValidity, 1) {
		err = fmt.Errorf("extend %q: the nodes replied too late: only %v of the TTL of %v remain", held.claim.name, left, ttl)
	}
	return err
}

// settled is an enough function. After the node timeout it ends a wait as soon as no answer can change the verdict.
func (l *Locker) settled(t tally, overtime bool) bool {
	return overtime && (t.yes >= l.quorum() || t.yes+t.waiting < l.quorum())
}

// verdict returns nil if a quorum answered yes, and ErrNotHeld if so many nodes answered no that a quorum is
// impossible. Otherwise it returns an error that wraps a node's error.
func (l *Locker) verdict(what string, c *claim, t tally) error {
	switch {
	case t.yes >= l.quorum():
		return nil
	case t.yes+t.failed >= l.quorum():
		return fmt.Errorf("%s %q: %d nodes confirmed, fewer than the quorum of %d: %w", what, c.name, t.yes,
			l.quorum(), t.err)
	}
	return strategies.ErrNotHeld
}
