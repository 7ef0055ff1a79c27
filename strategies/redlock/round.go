package redlock

import (
	"context"
	"slices"
	"time"

	"github.com/lockbench/lockbench/strategies/internal/pending"
	"github.com/lockbench/lockbench/strategies/internal/token"
)

// claim is the attempt of one round to get the lock. Each claim has a new token, so that a late command of one round
// cannot affect another round.
type claim struct {
	name, token string
	ttl         time.Duration // in whole milliseconds
	timeout     time.Duration // for one node
	start       time.Time     // before the first command was sent
	granted     []*node       // nodes that answered yes in time
	reached     []*node       // nodes that must be freed, because they answered in time
	tally       tally
	rest        <-chan struct{} // closed when no call of the round is running
	won         bool            // a quorum granted the lock, with enough validity left
	lonely      bool            // fewer nodes than a quorum were reachable
}

// round sends one acquire to every node, and returns the claim with the nodes' answers.
func (l *Locker) round(ctx context.Context, name string, ttl time.Duration) *claim {
	l.config.Probe.Attempt()
	c := &claim{name: name, token: l.owners.Next(), ttl: ttl, timeout: l.options.timeout(ttl), start: time.Now()}
	unreachable := 0
	for _, nodes := range l.turns {
		if c.rest != nil && (ctx.Err() != nil || l.lost(c.tally, false)) {
			break // in sequential mode
		}
		p := l.ask(ctx, nodes, c.timeout, l.lost,
			func(ctx context.Context, n *node) (bool, error) { return l.set(ctx, n, c) },
			func(n *node) { l.freeLate(n, c) })
		c.rest = p.ended
		for _, a := range p.answers {
			c.tally.add(a)
			switch {
			case a.err == nil:
				c.reached = append(c.reached, a.node)
			case a.node.unreachable(a.err):
				unreachable++
			}
			if a.yes {
				c.granted = append(c.granted, a.node)
			}
		}
	}
	if l.options.Release == Granted {
		c.reached = c.granted
	}
	valid := Validity(ttl, time.Since(c.start), l.options.Drift)
	c.won = c.tally.yes >= l.quorum() && valid >= max(l.options.MinValidity, 1)
	c.lonely = len(l.nodes)-unreachable < l.quorum()
	return c
}

// lost is an enough function that ends a round after the node timeout, or when so many nodes have answered no that a
// quorum is impossible. In the second case waiting for more answers would only delay the release of the nodes that
// granted the lock.
func (l *Locker) lost(t tally, overtime bool) bool {
	return overtime || l.options.Release != Never && l.refused(t)
}

// refused reports whether so many nodes have answered no that a quorum is impossible.
func (l *Locker) refused(t tally) bool { return t.no > len(l.nodes)-l.quorum() }

// set sends the acquire to one node. If the reply is lost, the node may have granted the lock, so set adds a release
// that is repeated in the background.
func (l *Locker) set(ctx context.Context, n *node, c *claim) (bool, error) {
	got, err := call(ctx, n, func() (bool, error) { return n.client.SetNX(ctx, c.name, c.token, c.ttl).Result() })
	if asked := pending.Asked(err); asked != nil && l.options.Release != Granted {
		n.releases.Add(c.undoing(n, asked, c.ttl))
	}
	return got, err
}

// free deletes the lock from one node if the key holds the claim's token, and reports whether it did. A failed deletion
// is repeated in the background for as long as the node may keep the lock, at most for ttl.
func (l *Locker) free(ctx context.Context, n *node, c *claim, ttl time.Duration) (bool, error) {
	freed, err := call(ctx, n, func() (bool, error) { return c.free(ctx, n) })
	if err != nil {
		n.releases.Add(c.undoing(n, nil, ttl))
	}
	return freed, err
}

// free deletes the lock from a node if the key holds the claim's token, and reports whether it did.
func (c *claim) free(ctx context.Context, n *node) (bool, error) {
	freed, err := token.ReleaseScript.Run(ctx, n.client, []string{c.name}, c.token).Int()
	return freed == 1, err
}

// undoing returns a release of the claim on one node. The release is repeated in the background until the node replies.
func (c *claim) undoing(n *node, asked <-chan struct{}, ttl time.Duration) *pending.Release {
	return &pending.Release{Asked: asked, TTL: ttl, Send: func(ctx context.Context) error {
		_, err := c.free(ctx, n)
		n.note(err)
		return err
	}}
}

// freeLate frees a node that granted the lock after ask had returned.
func (l *Locker) freeLate(n *node, c *claim) {
	if l.options.Release == Granted {
		return
	}
	ctx, cancel := context.WithTimeout(l.undoing, patience)
	defer cancel()
	_, _ = l.free(ctx, n, c, c.ttl)
}

// giveBack frees the nodes that answered in a failed round. This includes nodes that answered no: after a lost reply
// the client may have repeated the SET, which then found the claim's own token. The other nodes are freed by set and
// freeLate; giveBack waits for that until the node timeout.
func (l *Locker) giveBack(ctx context.Context, c *claim) {
	l.ask(ctx, c.reached, c.timeout, inTime,
		func(ctx context.Context, n *node) (bool, error) { return l.free(ctx, n, c, c.ttl) }, nil)
	timer := time.NewTimer(time.Until(c.start.Add(c.timeout)))
	defer timer.Stop()
	select {
	case <-c.rest:
	case <-timer.C:
	case <-ctx.Done(): // the round has already waited for its grace
	}
}

func (l *Locker) giveAllBack(ctx context.Context, kept []*claim) {
	for _, c := range l.remainingClaims(kept) {
		l.giveBack(ctx, c)
	}
}

// remainingClaims returns kept without the claims that can no longer have a key on any node.
func (l *Locker) remainingClaims(kept []*claim) []*claim {
	return slices.DeleteFunc(kept, func(c *claim) bool {
		return len(c.granted) == 0 || time.Since(c.start) > c.ttl+patience
	})
}
