package locktest

import (
	"context"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// Each of these promises may be found broken by several checks. Every other promise belongs to one check and is named
// in Checks.
const (
	granting   = "a free lock can be acquired, and released once"
	exclusive  = "never more holders than permits"
	trying     = "a try-lock does not wait"
	ending     = "a wait ends with its context"
	tidy       = "there are no leftovers"
	recovering = "a dead holder's lock frees by itself"
	waking     = "no wake-up is lost"
	ungranted  = "a lock that is granted after its client has given up is freed"
	growing    = "fencing tokens increase"
	valid      = "a lease is valid at most as long as Redis keeps it"
)

// Check is one check of the suite. It tests one promise, and may also find other promises broken.
type Check struct {
	Name    string
	needs   need
	run     func(*stage)
	Promise string // the name of the promise in a Failure
	Proves  string // what a pass proves about a lock, as one sentence
}

// need is the set of claims and properties that a lock must have for a check to apply.
type need int

const (
	excludes need = 1 << iota // the other needs imply it
	shares
	recovers
	queues
	bounds
	fences
	reenters
	watches
	onRedis
	onNodes
	onCluster
)

// missing returns the reason why a lock does not meet the needs, or "" if it meets all needs.
func (n need) missing(info strategies.Info) string {
	claims := info.Claims
	for _, one := range []struct {
		of  need
		met bool
		why string
	}{
		{^0, claims.Exclusion, "it does not claim exclusion"},
		{^0, info.Capacity > 0, "it does not limit its holders"},
		{shares, info.Capacity > 1, "it has only one permit"},
		{recovers, claims.Recovery, "it does not claim recovery"},
		{queues, claims.FIFO, "it does not claim FIFO"},
		{bounds, claims.Bounded || claims.FIFO, "it does not claim bounded overtaking"},
		{bounds, info.Capacity == 1, "it has several permits"},
		{fences, claims.Fencing, "it does not claim fencing"},
		{reenters, claims.Reentrant, "it does not claim re-entrance"},
		{watches, claims.Watchdog, "it does not claim a watchdog"},
		{onRedis, info.Nodes > 0, "it exists only in its process and uses no server"},
		{onRedis, info.OnRedis(), "it uses a store other than Redis"},
		{onNodes, info.Nodes > 1, "it is not a quorum of several nodes"},
		{onCluster, info.NoCluster == "", "it cannot run on a cluster: " + info.NoCluster},
	} {
		if n&one.of != 0 && !one.met {
			return one.why
		}
	}
	return ""
}

// Inapplicable returns the reason why the check does not apply to a lock, such as "it does not claim fencing", or "" if
// it applies.
func (c Check) Inapplicable(info strategies.Info) string { return c.needs.missing(info) }

// Judge runs the check on a fixture until the check or ctx ends. When Judge returns, no call of the check is still
// running, except calls that the lock never ends.
func (c Check) Judge(ctx context.Context, fixture Fixture, info strategies.Info) Result {
	if why := c.Inapplicable(info); why != "" {
		return Result{Check: c.Name, Proves: c.Proves, Verdict: NotApplicable, Because: why}
	}
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := newStage(ctx, c, fixture, info)
	defer s.cleanUp()
	played := make(chan struct{})
	go func() { // a check that ends early ends its goroutine
		defer close(played)
		s.play()
		s.atItsEnd = true
	}()
	<-played
	v := s.conclude(limit(c.Name, info))
	v.Took = time.Since(began)
	return v
}

// limit returns the reason that a lock's Info declares for failing a check, or "" if it declares none.
func limit(check string, info strategies.Info) string {
	for _, l := range info.Limits {
		if l.Check == check {
			return l.Because
		}
	}
	return ""
}

// Checks returns all checks in the order in which they run. The later checks break servers, networks or calls on
// purpose.
func Checks() []Check {
	return []Check{
		{
			"acquire and release", 0, acquireAndRelease, granting,
			"A free lock can be acquired and released, and a second release of the same lease returns ErrNotHeld.",
		},
		{
			"closed", excludes, closed, "a closed instance grants nothing and harms no holder",
			"After Close no caller acquires a lock, and a holder can still release its lock.",
		},
		{
			"strange keys", excludes, unusualKeys, "every string is a separate key",
			"Strings with braces, spaces, zero bytes or non-ASCII characters, strings of a kilobyte and the empty string are " +
				"separate keys.",
		},
		{
			"exclusion", excludes, exclusion, exclusive,
			"Clients of three instances that compete for one key never hold it at the same time, and one correct lock could " +
				"have returned the results of all their calls.",
		},
		{
			"permits", shares, permits, "as many clients hold the lock as there are permits",
			"As many clients hold a semaphore as it has permits, and each released permit admits one waiter.",
		},
		{
			"stranger", excludes, releaseTwice, "only the owner releases",
			"A second release of a lease does not free the lock if another client holds it by then.",
		},
		{
			"try-lock", excludes, tryLock, trying,
			"A try-lock returns at once: it is refused while another client holds the lock, and granted when the lock is " +
				"free.",
		},
		{
			"cancelled wait", excludes, cancelledWait, ending,
			"A wait ends with its context, at its deadline or when it is cancelled, with the context's error and without " +
				"the lock.",
		},
		{
			"cancelled at any moment", excludes, cancelledAnytime,
			"an ended wait consumes neither the lock nor a wake-up",
			"A wait that is cancelled at any moment around a release deprives later waiters of neither the lock nor the " +
				"wake-up.",
		},
		{
			"given-up waits", excludes, givenUpWaits, tidy,
			"Cancelled waits leave no key, channel, connection or goroutine behind.",
		},
		{
			"fifo", queues, fifo, "first come, first served",
			"Waiters of three instances get the lock in the order in which they requested it.",
		},
		{
			"overtaking", bounds, overtaking, "no client is overtaken repeatedly",
			"No client gets the lock repeatedly before a client that requested it earlier, however soon it requests it again.",
		},
		{
			"fencing", fences, fencing, growing,
			"Each lease's token is larger than all earlier ones, in all instances and after a holder's death.",
		},
		{
			"re-entrance", reenters, reentrance, "the owner may acquire again, and must release as often",
			"An owner can acquire a lock that it already holds, no other client can, and the lock is free after as many " +
				"releases as acquires.",
		},
		{
			"dead holder", recovers, deadHolder, recovering,
			"A waiter gets the lock of a dead holder after the TTL.",
		},
		{
			"late release", recovers, lateRelease,
			"a late release returns ErrNotHeld and does not affect the next holder",
			"A release or an extension after the lease ran out returns ErrNotHeld, and the next holder keeps the lock.",
		},
		{
			"extend", recovers, extend, "an extended lease lasts",
			"An extended lease outlasts its first TTL, and extensions do not add up.",
		},
		{
			"validity", recovers, validity, valid,
			"A lease reports a validity of at most its TTL after the request, no other client gets the lock within it, and a " +
				"lease that is granted after a long wait is still valid.",
		},
		{
			"TTL of a call", recovers, callTTL, "the TTL of a call applies to its lease",
			"A lease with the TTL of a call lasts for that TTL, whether it is longer or shorter than the Locker's, and is " +
				"not renewed; a TTL below a millisecond is refused.",
		},
		{
			"watchdog", watches, watchdog, "the watchdog renews the leases of a living holder only",
			"The watchdog renews each lease of a living holder beyond its TTL, but neither the lease of a dead holder nor " +
				"a lock that was released or acquired by another client.",
		},
		{
			"release before the wait", onRedis, releaseBeforeTheWait, waking,
			"A release between any two of the commands with which a client starts to wait wakes this client and a client " +
				"that starts to wait later.",
		},
		{
			"release during a reconnect", onRedis, releaseDuringReconnect, waking,
			"A release while a waiter's connection is cut, or between any two of the commands with which it reconnects, " +
				"wakes the waiter.",
		},
		{
			"silent subscription", onRedis, silentSubscription,
			"a silent connection delays a waiter by at most the holder's TTL",
			"When the connections that announce releases to an instance stay open but deliver nothing, a waiter gets the " +
				"lock within the TTL, and a wait still ends with its context.",
		},
		{
			"killed connections", onRedis, killedConnections, waking,
			"Waiters whose connections are killed just before a release get the lock.",
		},
		{
			"flushed scripts", onRedis, flushedScripts, "a flushed script cache is refilled",
			"Acquire, wait and release work after the servers have forgotten all scripts.",
		},
		{
			"lost reply", onRedis, lostReply, ungranted,
			"A lock that a server grants to a client that has given up is freed long before its TTL.",
		},
		{
			"hanging server", onRedis, hangingServer,
			"calls end with their contexts while servers hang, and leave nothing locked",
			"While the servers hang, each call and wait with go-redis's default options ends soon after its context, and no " +
				"lock stays taken when the servers continue.",
		},
		{
			"loss in time", watches | onRedis, lossInTime,
			"a lease that cannot be renewed is reported as lost when it ends",
			"When the servers hang, a watchdog reports the loss of a lease when the lease ends, even if its client still " +
				"waits for a reply.",
		},
		{
			"restarted server", onRedis, restartedServer, "instances find a restarted server again",
			"When a server restarts empty, all waits end, and the same instances continue to work.",
		},
		{
			"dead nodes", onNodes, deadNodes, "a majority of the nodes is enough, and needed",
			"A quorum continues to work without a minority of its nodes, grants nothing without a majority, and recovers.",
		},
		{
			"slow answer", recovers | onRedis, slowAnswer, "an acquire returns no lease that has already run out",
			"An acquire whose reply takes longer than the TTL does not return the lease, because another client may hold the " +
				"lock by then.",
		},
		{
			"late commands", recovers | onRedis, lateCommands,
			"a stale holder's late commands do not affect the next holder",
			"Delayed commands of a release, an extension or an acquire that reach the servers after another client has " +
				"acquired the lock do not affect that client's lease.",
		},
		{
			"lost answers", recovers | onRedis, lostAnswers,
			"a lost reply causes neither a second holder nor a lock that stays taken without a holder",
			"When a command of an acquire, a release or an extension is lost, or the reply to it, no second client gets the " +
				"lock and no lock stays taken without a holder, even if the caller makes no further call.",
		},
		{
			"cancelled release", onRedis, cancelledRelease, "a cancelled release can be repeated and blocks no waiter",
			"A release that is cancelled at any of its commands can be repeated, and then a waiter gets the lock.",
		},
		{
			"abandoned release", watches | onRedis, abandonedRelease,
			"no watchdog keeps a lock whose release was cancelled",
			"A lock whose release was cancelled at any of its commands is free after its TTL, even with a watchdog.",
		},
		{
			"abandoned acquire", watches | onRedis, abandonedAcquire,
			"no watchdog keeps a lock whose acquire was cancelled",
			"A lock whose acquire was cancelled at any of its commands is free after its TTL, even with a watchdog.",
		},
		{
			"renewal and release", watches | onRedis, renewalAndRelease,
			"a renewal that races with a release reports no loss",
			"A release succeeds while a renewal or the reply to it is in transit, and the lease is not reported as lost.",
		},
		{
			"refused writes", onRedis, refusedWrites, "refused writes cause no second holder and no lasting damage",
			"While servers refuse writes, no client gets a lock that another client holds; when they accept writes again, " +
				"all waiters get the lock.",
		},
		{
			"refused release", onRedis, refusedRelease, "the lock repeats a release that was refused or not sent",
			"If the servers refuse a release for a moment, or the release is called with an ended context, the lock is " +
				"granted again long before its TTL ends, without another call of Release.",
		},
		{
			"failover", onRedis, failover, "a failover that loses no data causes no second holder and blocks no waiter",
			"When a replica that has all data takes its server's place while a lock is passed on, there is one holder at a " +
				"time, tokens increase and all waiters get the lock.",
		},
		{
			"sentinel", onRedis, sentinel, "a waiter follows its client to the new primary",
			"When Sentinel promotes a replica that has all data and the old primary continues as a master, the holder keeps " +
				"its lock, a waiter gets it soon after the release, and all later locks are on the new primary.",
		},
		{
			"idle keys", onRedis, idleKeys, "idle locks leave only the declared keys",
			"While the instances live, idle locks leave no keys and channels except the declared ones.",
		},
		{
			"connections", onRedis, connections, "idle locks keep no connections, and waiters only the declared ones",
			"Besides its clients' pools, an instance has no more connections than its Info declares, however many locks it " +
				"has used.",
		},
		{
			"forged messages", onRedis, forgedMessages, "a message grants no lock or token and deletes no key",
			"Repeated and altered hand-over messages, from a client that may only publish, cause no second holder and no " +
				"token, and delete no key.",
		},
		{
			"moving slot", onRedis | onCluster, movingSlot, "a moving slot causes no second holder and blocks no waiter",
			"When a slot of a cluster moves while a lock in the slot has a holder and waiters, there is one holder at a time " +
				"and all waiters get the lock.",
		},
		{
			"dying node", onRedis | onCluster, dyingNode,
			"a node's death causes no second holder, and its lock is granted again soon",
			"When the cluster node that has the lock dies and a replica with all its data takes its place, there is one " +
				"holder at a time, and the lock is granted again within its TTL plus a few seconds.",
		},
		{
			"clock set forward", recovers | onRedis, clockSetForward, "setting a server's clock forward ends no lease",
			"When the servers' clocks are set forward, no client gets a lock whose holder's lease is valid.",
		},
		{
			"clock set back", recovers | onRedis, clockSetBack,
			"setting a server's clock back blocks no waiter and repeats no token",
			"When the servers' clocks are set back, waiters still get the lock, and tokens increase.",
		},
	}
}
