package locktest

import (
	"context"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// Promises that several checks may find broken. The others stand in the list of checks.
const (
	granting   = "a free lock is granted, and given back once"
	exclusive  = "never more holders than permits"
	trying     = "a try-lock does not wait"
	ending     = "a wait ends with its context"
	tidy       = "there are no leftovers"
	recovering = "a dead holder's lock frees by itself"
	waking     = "no wake-up is lost"
	ungranted  = "a lock that was granted to nobody is freed"
	growing    = "fencing tokens grow"
	valid      = "a lease is valid no longer than Redis keeps it"
)

// Check is one check of the suite. It tests one promise, although it may find others broken.
type Check struct {
	Name    string
	needs   need
	run     func(*stage)
	Promise string // as a Failure calls it
	Proves  string // what a pass proves of a lock, in a sentence
}

// need is the set of what a lock must claim, or be, for a check to apply.
type need int

const (
	excludes need = 1 << iota // part of all others
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

// missing returns why a lock does not meet the needs; "" means that it does.
func (n need) missing(info strategies.Info) string {
	claims := info.Claims
	for _, one := range []struct {
		of  need
		met bool
		why string
	}{
		{^0, claims.Exclusion, "it does not claim exclusion"},
		{^0, info.Capacity > 0, "it does not limit its holders"},
		{shares, info.Capacity > 1, "it has one permit"},
		{recovers, claims.Recovery, "it does not claim recovery"},
		{queues, claims.FIFO, "it does not claim FIFO"},
		{bounds, claims.Bounded || claims.FIFO, "it does not claim bounded overtaking"},
		{bounds, info.Capacity == 1, "it has several permits"},
		{fences, claims.Fencing, "it does not claim fencing"},
		{reenters, claims.Reentrant, "it does not claim re-entrance"},
		{watches, claims.Watchdog, "it does not claim a watchdog"},
		{onRedis, info.Nodes > 0, "it lives in the process, on no server"},
		{onRedis, info.OnRedis(), "it locks in another store than Redis"},
		{onNodes, info.Nodes > 1, "it is no quorum of several nodes"},
		{onCluster, info.NoCluster == "", "it cannot run on a cluster: " + info.NoCluster},
	} {
		if n&one.of != 0 && !one.met {
			return one.why
		}
	}
	return ""
}

// Inapplicable returns why the check does not apply to such a lock, such as "it does not
// claim fencing"; "" means that it applies.
func (c Check) Inapplicable(info strategies.Info) string { return c.needs.missing(info) }

// Judge runs the check on a fixture, until the check is over or ctx has ended. Only calls of
// the lock that never return stay behind.
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

// limit returns why a lock's Info says that it does not pass a check, or "".
func limit(check string, info strategies.Info) string {
	for _, l := range info.Limits {
		if l.Check == check {
			return l.Because
		}
	}
	return ""
}

// Checks returns all checks, in the order in which they are run. The last ones break servers,
// networks or calls on purpose.
func Checks() []Check {
	return []Check{
		{
			"acquire and release", 0, acquireAndRelease, granting,
			"A free lock is granted and given back, and who gives it back twice is told that he did not hold it.",
		},
		{
			"closed", excludes, closed, "Close refuses new callers and harms no holder",
			"After Close nobody is granted a lock, and those who hold one can still give it back.",
		},
		{
			"strange keys", excludes, strangeKeys, "any string is a key of its own",
			"Every string is a key of its own: with braces, spaces, zero bytes, letters of all scripts, a kilobyte " +
				"of them, or empty.",
		},
		{
			"exclusion", excludes, exclusion, exclusive,
			"Clients of three instances that fight for one key are never inside at a time, and what they were " +
				"answered is what one lock can have answered.",
		},
		{
			"permits", shares, permits, "as many may hold as there are permits",
			"As many hold a semaphore as it has permits, and as many waiters get in as permits are given back.",
		},
		{
			"stranger", excludes, stranger, "only the owner releases",
			"A lease that was given back cannot free the lock that somebody else holds by now.",
		},
		{
			"try-lock", excludes, tryLock, trying,
			"A try-lock returns at once: refused while another holds the lock, granted when it is free.",
		},
		{
			"cancelled wait", excludes, cancelledWait, ending,
			"A wait ends with its context, by deadline or by cancel, with the context's error and without the lock.",
		},
		{
			"cancelled at any moment", excludes, cancelledAnytime,
			"a wait that ends takes neither lock nor wake-up with it",
			"Waits that are cancelled at any moment around a release keep neither the lock nor the wake-up from " +
				"those behind them.",
		},
		{
			"given-up waits", excludes, givenUpWaits, tidy,
			"Waits that were given up leave no key, channel, connection or goroutine behind.",
		},
		{
			"fifo", queues, fifo, "first come, first served",
			"Waiters of three instances are served in the order in which they came.",
		},
		{
			"overtaking", bounds, overtaking, "nobody is overtaken again and again",
			"No client is served again and again before one who asked earlier, however fast it comes back.",
		},
		{
			"fencing", fences, fencing, growing,
			"Each lease's token is larger than all before it, in all instances and after a holder's death.",
		},
		{
			"re-entrance", reenters, reentrance, "the owner may acquire again, and releases as often",
			"An owner acquires again what it holds, nobody else does, and the lock is free after as many releases.",
		},
		{
			"dead holder", recovers, deadHolder, recovering,
			"The lock of a holder that died is granted to a waiter after the TTL.",
		},
		{
			"late release", recovers, lateRelease, "a late release is told so and harms nobody",
			"Who releases or extends a lease after it ran out is told so, and the next holder keeps the lock.",
		},
		{
			"extend", recovers, extend, "an extended lease lasts",
			"A lease that was extended outlasts its first TTL, and extensions do not add up.",
		},
		{
			"validity", recovers, validity, valid,
			"A lease is said to be valid no longer than its TTL from before it was asked for, nobody else gets the " +
				"lock in that time, and a lease that was waited for has not ended by its own word.",
		},
		{
			"TTL of a call", recovers, callTTL, "the TTL of a call is its lease's",
			"A lease with a TTL of its own lasts that long, longer or shorter than its Locker's, and is not renewed; " +
				"a TTL below a millisecond is refused.",
		},
		{
			"watchdog", watches, watchdog, "a living holder keeps its lease, and no other does",
			"Each lease of a living holder is renewed beyond its TTL, that of a dead one is not, and a lock that was " +
				"given back or taken by another is left alone.",
		},
		{
			"release before the wait", onRedis, releaseBeforeTheWait, waking,
			"A release between any two commands of a waiter on its way to its wait reaches it, and a waiter that came " +
				"after it.",
		},
		{
			"release during a reconnect", onRedis, releaseDuringReconnect, waking,
			"A release while a waiter's connection is cut, or between any two commands with which it comes back, " +
				"reaches it.",
		},
		{
			"silent subscription", onRedis, silentSubscription,
			"a connection that falls silent costs a waiter its holder's TTL at most",
			"When the connections on which an instance hears of releases carry nothing more and stay open, a waiter has " +
				"the lock within the TTL, and a wait still ends with its context.",
		},
		{
			"killed connections", onRedis, killedConnections, waking,
			"Waiters whose connections are killed just before a release get the lock.",
		},
		{
			"flushed scripts", onRedis, flushedScripts, "a flushed script cache is filled again",
			"Acquire, wait and release work after the servers have forgotten all scripts.",
		},
		{
			"lost reply", onRedis, lostReply, ungranted,
			"A lock that a server granted to somebody who had given up by then is freed, long before its TTL.",
		},
		{
			"hanging server", onRedis, hangingServer,
			"calls end with their contexts while servers hang, and leave nothing locked",
			"With a client of go-redis's defaults each call and wait ends soon after its context while the servers hang, " +
				"and when they go on nothing stays locked.",
		},
		{
			"loss in time", watches | onRedis, lossInTime,
			"a lease that cannot be renewed is reported as lost at its end",
			"When the servers hang a watchdog reports the loss of a lease at its end, whatever its client waits for.",
		},
		{
			"restarted server", onRedis, restartedServer, "a restarted server is found again",
			"When a server comes back empty all waits end, and the same instances work on.",
		},
		{
			"dead nodes", onNodes, deadNodes, "a majority of the nodes is enough, and needed",
			"A quorum works on without a minority of its nodes, grants nothing without a majority, and recovers.",
		},
		{
			"slow answer", recovers | onRedis, slowAnswer, "no lease is handed out that has already run out",
			"An acquire whose answer takes longer than the TTL does not return the lease, which another may have by " +
				"then.",
		},
		{
			"late commands", recovers | onRedis, lateCommands, "a stale holder's late commands harm nobody",
			"Commands of a release, an extension or an acquire that reach the servers when another holds the lock " +
				"take nothing from it.",
		},
		{
			"lost answers", recovers | onRedis, lostAnswers,
			"an answer that is lost makes no second holder, and no lock that nobody holds",
			"When the answer to a command of an acquire, a release or an extension is lost after it was carried out, " +
				"nobody else is let in, and no lock stays held by nobody, also if the command was lost and its " +
				"caller does nothing more.",
		},
		{
			"cancelled release", onRedis, cancelledRelease,
			"a release that is cancelled can be repeated, and strands nobody",
			"A release that is cancelled at any of its commands can be repeated, and then who waits is served.",
		},
		{
			"abandoned release", watches | onRedis, abandonedRelease,
			"no watchdog keeps a lock whose release was cancelled",
			"A lock whose release was cancelled at any of its commands is free after its TTL, whatever renews it.",
		},
		{
			"abandoned acquire", watches | onRedis, abandonedAcquire,
			"no watchdog keeps a lock whose acquire was cancelled",
			"A lock whose acquire was cancelled at any of its commands is free after its TTL, whatever renews it.",
		},
		{
			"renewal and release", watches | onRedis, renewalAndRelease,
			"a renewal that races with a release reports no loss",
			"A release while a renewal is on its way, there or back, succeeds, and the lease is not told to be lost.",
		},
		{
			"refused writes", onRedis, refusedWrites,
			"refused writes make no second holder, and their end is the end of it",
			"While servers refuse writes nobody gets a lock that another holds, and when they take them again all " +
				"who wait are served.",
		},
		{
			"refused release", onRedis, refusedRelease, "a release that was refused or not sent is repeated",
			"A lock whose release the servers have refused for a moment, or whose context had ended, is granted again " +
				"long before its TTL, without another release.",
		},
		{
			"failover", onRedis, failover, "a failover that loses nothing makes no second holder and strands nobody",
			"When a replica that has everything takes its server's place while a lock is passed on, there is one " +
				"holder at a time, tokens grow and all who wait are served.",
		},
		{
			"sentinel", onRedis, sentinel, "a waiter follows its client to the new primary",
			"When Sentinel makes a replica with all data the primary, and the old one lives on as a master, a lock is " +
				"held as before, a waiter has it soon after its release, and all later locks are on the new primary.",
		},
		{
			"idle keys", onRedis, idleKeys, "idle locks leave no keys but those declared",
			"Locks that were used and are idle leave no keys and channels, while the instances live on, but those " +
				"declared.",
		},
		{
			"connections", onRedis, connections, "idle locks keep no connections, and waits only those declared",
			"Beside its clients' pools an instance has no more connections than it declares, however many locks it " +
				"has used.",
		},
		{
			"forged messages", onRedis, forgedMessages, "a message gives nobody a lock or a token, and takes no key",
			"Messages that repeat and vary what a hand-over published, from somebody who may publish and nothing " +
				"else, make no second holder and no token, and delete nothing.",
		},
		{
			"moving slot", onRedis | onCluster, movingSlot,
			"a slot that moves makes no second holder and strands nobody",
			"When a cluster's slot moves while a lock in it is held and waited for, there is one holder at a time " +
				"and all who wait are served.",
		},
		{
			"dying node", onRedis | onCluster, dyingNode,
			"a node that dies gives nobody another's lock, and its lock is granted again soon",
			"When the node of a cluster that has the lock dies and a replica with all its data takes its place, " +
				"there is one holder at a time, and the lock is granted again within its TTL and some seconds.",
		},
		{
			"clock set forward", recovers | onRedis, clockSetForward,
			"a clock of the server that is set forward ends no lease",
			"When the servers' clocks are set forward nobody gets a lock whose holder's lease is valid.",
		},
		{
			"clock set back", recovers | onRedis, clockSetBack,
			"a clock of the server that is set back strands nobody, and repeats no token",
			"When the servers' clocks are set back a lock is passed on, and tokens grow.",
		},
	}
}
