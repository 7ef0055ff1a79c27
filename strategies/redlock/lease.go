package redlock

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/token"
)

// lease is a claim that was won.
type lease struct {
	locker *Locker
	claim  *claim
	until  atomic.Pointer[time.Time]
}

func newLease(l *Locker, c *claim) *lease {
	held := &lease{locker: l, claim: c}
	held.setUntil(c.start, c.ttl)
	return held
}

// ValidUntil returns the moment before the first node was asked, or before the last
// extension, plus the TTL less drift. Any goroutine may call it.
func (held *lease) ValidUntil() time.Time { return *held.until.Load() }

func (held *lease) setUntil(start time.Time, ttl time.Duration) {
	until := start.Add(Validity(ttl, 0, held.locker.options.Drift))
	held.until.Store(&until)
}

// Release frees all nodes at the same time. It waits for all of them until the node timeout,
// and up to a second longer for a quorum; it frees nodes that do not answer in the
// background. ErrNotHeld means that fewer than a quorum still held the lock. The end of ctx
// does not stop it.
func (held *lease) Release(ctx context.Context) error {
	l := held.locker
	p := l.ask(ctx, held.claim.reached, held.claim.timeout, l.settled, func(ctx context.Context, n *node) (bool, error) {
		return l.free(ctx, n, held.claim)
	}, nil)
	return l.verdict("release", held.claim, p.tally)
}

// Extend renews the lease on the nodes that granted it; a quorum must still hold it. After an
// error other than ErrNotHeld the lease stays as it was, but never lasts beyond ttl from now,
// since some nodes may have been renewed.
func (held *lease) Extend(ctx context.Context, ttl time.Duration) error {
	l := held.locker
	ttl = ttl.Truncate(time.Millisecond)
	if err := l.options.suits(ttl); err != nil {
		return fmt.Errorf("extend %q: %w", held.claim.name, err)
	}
	start := time.Now()
	p := l.ask(ctx, held.claim.granted, l.options.timeout(ttl), l.settled, func(ctx context.Context, n *node) (bool, error) {
		renewed, err := token.ExtendScript.Run(ctx, n.client, []string{held.claim.name}, held.claim.token, ttl.Milliseconds()).Int()
		return renewed == 1, err
	}, nil)
	err := l.verdict("extend", held.claim, p.tally)
	if left := Validity(ttl, time.Since(start), l.options.Drift); err == nil && left < max(l.options.MinValidity, 1) {
		err = fmt.Errorf("extend %q: the nodes answered too late: %v remain of %v", held.claim.name, left, ttl)
	}
	if err == nil || start.Add(Validity(ttl, 0, l.options.Drift)).Before(held.ValidUntil()) {
		held.setUntil(start, ttl)
	}
	return err
}

// settled ends a wait after the node timeout, once no answer can change the verdict.
func (l *Locker) settled(t tally, overtime bool) bool {
	return overtime && (t.yes >= l.quorum() || t.yes+t.waiting < l.quorum())
}

// verdict returns nil if a quorum said yes, and ErrNotHeld if too many said no for a quorum.
func (l *Locker) verdict(what string, c *claim, t tally) error {
	switch {
	case t.yes >= l.quorum():
		return nil
	case t.yes+t.failed >= l.quorum():
		return fmt.Errorf("%s %q on a quorum, %d of %d did: %w", what, c.name, t.yes, l.quorum(), t.err)
	}
	return strategies.ErrNotHeld
}
