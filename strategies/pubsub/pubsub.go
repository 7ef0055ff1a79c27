// Package pubsub is Redisson's RLock, wire-compatible with it: a hash of the owner
// and how often it holds, a channel on which a release is told.
//
// An uncontended acquire is one EVALSHA (EXISTS, HINCRBY, PEXPIRE inside), a release
// another (HEXISTS, HINCRBY, DEL, PUBLISH): one round trip each. A waiter tries,
// subscribes and tries again, since the release may have come in between; then
// it parks for at most the holder's PTTL, and pays one EVALSHA for each wake-up.
//
// All waiters of a Locker for one lock share one subscription, all its locks one
// connection. A release wakes one waiter of each Locker, the longest parked; one
// that tried in vain parks anew, behind the others. So P processes make P attempts
// for each release, of which one succeeds. Newcomers may barge in between. Redis
// tells processes always in the same order, and the first has an edge: turns are
// even among the waiters of a process, not between processes. An expired lock is
// told to nobody: every waiter looks for itself when its PTTL is over.
//
// It guarantees exclusion while a lease is valid, frees a dead holder's lock
// after the TTL, lets the same owner acquire again (AcquireAs), and, with the
// watchdog, renews a lease every TTL/3 until it is released.
//
// What breaks it: a holder that works on after Lost or ValidUntil; a failover to a
// replica that had not seen the hash; a subscription connection that is dead
// without being closed, which costs a PTTL for each wake-up until TCP notices. On a
// cluster Redisson tells a release by SPUBLISH and this by PUBLISH: there a waiter
// of one sees a release by the other only when its PTTL is over.
package pubsub

import (
	"fmt"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
)

func init() {
	strategies.Register(Defaults().Refine(strategies.Info{
		Name:        "pubsub",
		Summary:     "Redisson RLock: a release is published and wakes one waiter a process",
		Claims:      strategies.Claims{Exclusion: true, Recovery: true, Reentrant: true},
		Capacity:    1,
		Nodes:       1,
		Connections: strategies.Connections{PerInstance: 1},
	}), Defaults(), New)
}

// Options of the lock.
type Options struct {
	Watchdog bool `opt:"watchdog" help:"renew leases every TTL/3 while they are held"`
}

// Defaults are Redisson's: the watchdog runs.
func Defaults() Options { return Options{Watchdog: true} }

// Refine claims the watchdog when it runs.
func (o Options) Refine(info strategies.Info) strategies.Info {
	info.Claims.Watchdog = o.Watchdog
	return info
}

// lock has the methods that all locks of the family share.
type lock = redisson.Lock

// Locker is one process's side of the lock: the waiters, who share a
// subscription, and the holders, who share a watchdog. It is a strategies.Locker,
// Trier, Reentrant and Preparer.
type Locker struct{ *lock }

// New returns a Locker on the first node. It does not talk to Redis yet.
func New(config strategies.Config, options Options) (*Locker, error) {
	if err := config.Validate(1); err != nil {
		return nil, fmt.Errorf("pubsub: %w", err)
	}
	line := redisson.NewSubscriber(config.Nodes[0].Client, redisson.One)
	return &Locker{redisson.NewLock(config, redisson.RLock{}, line, options.Watchdog)}, nil
}
