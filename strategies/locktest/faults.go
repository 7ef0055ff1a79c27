package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// The promises of a strategy about faults, as a failure names them.
const (
	alive      = "no lease is handed out that has already run out"
	failing    = "a failover that loses nothing makes no second holder and strands nobody"
	refusing   = "refused writes make no second holder, and their end is the end of it"
	belated    = "a stale holder's late commands harm nobody"
	unanswered = "an answer that is lost makes no second holder, and no lock that nobody holds"
	cancelling = "a release that is cancelled can be repeated, and strands nobody"
	abandoning = "no watchdog keeps a lock whose release was cancelled"
	quietly    = "a renewal that races with a release tells of no loss"
	sparing    = "idle locks leave no keys but those declared"
	few        = "idle locks keep no connections, and waits only those declared"
	moving     = "a slot that moves makes no second holder and strands nobody"
	unforged   = "a message gives nobody a lock or a token, and takes no key"
	dying      = "a node that dies gives nobody another's lock, and its lock is granted again soon"
	forward    = "a clock of the server that is set forward ends no lease"
	back       = "a clock of the server that is set back strands nobody, and repeats no token"
)

// staleTTL is the TTL of leases that must run out soon, even if the machine stands still.
const staleTTL = 100 * time.Millisecond

// What a lock must be for some of these checks.
var (
	expires  = recovers.and(onRedis...)
	renews   = watches.and(onRedis...)
	clusters = onRedis.and(func(i strategies.Info) string {
		if i.NoCluster != "" {
			return "it cannot run on a cluster: " + i.NoCluster
		}
		return ""
	})
)

// faultChecks returns the checks that break servers, networks or calls on purpose.
func faultChecks() []Check {
	return []Check{
		{"slow answer", alive, "An acquire whose answer takes longer than the TTL does not return the lease, which another may have by then.", expires, slowAnswer},
		{"late commands", belated, "Commands of a release, an extension or an acquire that reach the servers when another holds the lock take nothing from it.", expires, lateCommands},
		{"lost answers", unanswered, "When the answer to a command of an acquire, a release or an extension is lost after it was carried out, nobody else is let in, and no lock stays held by nobody.", expires, lostAnswers},
		{"cancelled release", cancelling, "A release that is cancelled at any of its commands can be repeated, and then who waits is served.", onRedis, cancelledRelease},
		{"abandoned release", abandoning, "A lock whose release was cancelled at any of its commands is free after its TTL, whatever renews it.", renews, abandonedRelease},
		{"renewal and release", quietly, "A release while a renewal is on its way, there or back, succeeds, and the lease is not told to be lost.", renews, renewalAndRelease},
		{"refused writes", refusing, "While servers refuse writes nobody gets a lock that another holds, and when they take them again all who wait are served.", onRedis, refusedWrites},
		{"failover", failing, "When a replica that has everything takes its server's place while a lock is passed on, there is one holder at a time, tokens grow and all who wait are served.", onRedis, failover},
		{"idle keys", sparing, "Locks that were used and are idle leave no keys and channels, while the instances live on, but those declared.", onRedis, idleKeys},
		{"connections", few, "Beside its clients' pools an instance has no more connections than it declares, however many locks it has used.", onRedis, connections},
		{"forged messages", unforged, "Messages that repeat and vary what a hand-over published, from somebody who may publish and nothing else, make no second holder and no token, and delete nothing.", onRedis, forgedMessages},
		{"moving slot", moving, "When a cluster's slot moves while a lock in it is held and waited for, there is one holder at a time and all who wait are served.", clusters, movingSlot},
		{"dying node", dying, "When the node of a cluster that has the lock dies and a replica with all its data takes its place, there is one holder at a time, and the lock is granted again within its TTL and some seconds.", clusters, dyingNode},
		{"clock set forward", forward, "When the servers' clocks are set forward nobody gets a lock whose holder's lease is valid.", expires, clockSetForward},
		{"clock set back", back, "When the servers' clocks are set back a lock is passed on, and tokens grow.", expires, clockSetBack},
	}
}

// lasting is the TTL of leases that must not help a waiter by running out. A quorum's lease
// may stay on a minority of the nodes until its TTL ends, so a quorum's TTL is shorter.
func (s *stage) lasting() time.Duration {
	if s.info.Nodes > 1 {
		return 3 * time.Second
	}
	return longTTL
}

// background runs do in the background.
func (s *stage) background(i *instance, key string, do func(context.Context) error) *waiter {
	w := s.newWaiter(i, key)
	w.run(do)
	return w
}

// returned waits until the background call is over.
func (w *waiter) returned(what string) {
	if !w.within(w.s.patience) {
		w.s.fatalf("%s does not return within %v", what, w.s.patience)
	}
}

// asked asks for the lock once, by try-lock if there is one, and returns the lease. It
// returns nil when the lock is held.
func (s *stage) asked(i *instance, key string) strategies.Lease {
	if trier, ok := strategies.As[strategies.Trier](i.Locker); ok {
		w := s.waiterFor(i, key, trier.TryAcquire)
		w.returned("a try-lock")
		return w.lease
	}
	w := s.waiterFor(i, key, i.Acquire)
	w.within(50 * time.Millisecond)
	w.end()
	return w.lease
}

// validUntil is the end of the validity of a lease that was asked for at asked.
func validUntil(lease strategies.Lease, asked time.Time, ttl time.Duration) time.Time {
	if timed, ok := strategies.As[strategies.Timed](lease); ok {
		return timed.ValidUntil()
	}
	return asked.Add(ttl)
}

// again releases until the result is nil or ErrNotHeld, or until patience is over.
func (s *stage) again(lease strategies.Lease) (err error) {
	for end := time.Now().Add(s.patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		err = lease.Release(ctx)
		cancel()
		if err == nil || errors.Is(err, strategies.ErrNotHeld) {
			return err
		}
	}
	return err
}
