package redlock

import (
	"context"
	"time"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/strategies/internal/token"
)

// debt is a claim to take back.
type debt struct {
	claim *claim
	since time.Time
}

// undo takes a claim back in the background. While the node does not answer it tries again,
// until the claim is older than a minute and than its TTL, or Close has lost patience; then
// the lock there stays until its TTL.
func (l *Locker) undo(n *node, c *claim) {
	n.mu.Lock()
	n.debts = append(n.debts, debt{c, time.Now()})
	paying := n.paying
	n.paying = true
	n.mu.Unlock()
	if paying {
		return
	}
	pay := func() { l.pay(n) }
	if !l.background.Go(pay) {
		pay() // during or after Close: the caller is waited for
	}
}

// pay takes claims back until none is left.
func (l *Locker) pay(n *node) {
	for wait := l.options.timeout(l.config.TTL); ; wait = min(2*wait, patience) {
		n.mu.Lock()
		debts := n.debts
		n.debts = nil
		if len(debts) == 0 || l.undoing.Err() != nil {
			n.paying = false
			n.mu.Unlock()
			return
		}
		n.mu.Unlock()
		left := l.payAll(n, debts)
		if len(left) == 0 {
			continue
		}
		n.mu.Lock()
		n.debts = append(left, n.debts...)
		n.mu.Unlock()
		pause.Plain(l.undoing.Done(), wait)
	}
}

// payAll makes one try and returns the claims that are left.
//
// A SET without an answer may still be in the node's socket, and the node could read a
// release on another connection before it. So the release waits for the reply to a PING: by
// then the node has read whatever it had received.
func (l *Locker) payAll(n *node, debts []debt) (left []debt) {
	ctx, cancel := context.WithTimeout(l.undoing, patience)
	defer cancel()
	err := n.client.Ping(ctx).Err()
	n.note(err)
	for _, d := range debts {
		if err == nil {
			if err := token.ReleaseScript.Run(ctx, n.client, []string{d.claim.name}, d.claim.token).Err(); err == nil {
				continue
			}
		}
		if time.Since(d.since) < max(d.claim.ttl, time.Minute) {
			left = append(left, d)
		}
	}
	return left
}
