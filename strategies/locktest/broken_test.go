package locktest_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/locktest/redisservers"
)

// subject is a lock that the suite must judge, with the expected result.
type subject struct {
	name string
	info strategies.Info
	open func(goredis.Config) (strategies.Locker, error)

	// check names the check that must detect the fault. It must report promise as broken, in a failure that contains one
	// of the texts in seen. The fault may also break the promises in also, but no others. All four fields are empty for a
	// correct lock.
	check, promise string
	seen, also     []string
}

// defects are the names of the faults planted in a lock. A lock without defects is correct. A few names, such as polls,
// are not faults but select another correct variant.
type defects map[string]bool

func faultsOf(names string) defects {
	f := defects{}
	for name := range strings.FieldsSeq(names) {
		f[name] = true
	}
	return f
}

// These are the claims that a lock may make in addition to exclusion.
var (
	recovery  = func(c *strategies.Claims) { c.Recovery = true }
	fifo      = func(c *strategies.Claims) { c.FIFO = true }
	fencing   = func(c *strategies.Claims) { c.Fencing = true }
	reentrant = func(c *strategies.Claims) { c.Reentrant = true }
	watchdog  = func(c *strategies.Claims) { c.Watchdog = true }
	bounded   = func(c *strategies.Claims) { c.Bounded = true }
)

func claims(all ...func(*strategies.Claims)) strategies.Claims {
	c := strategies.Claims{Exclusion: true}
	for _, add := range all {
		add(&c)
	}
	return c
}

// byRedis is the limit of all locks whose leases end by Redis's clock: they fail the check "clock set forward".
var byRedis = []strategies.Limit{{Check: "clock set forward", Because: "Redis ends leases by its clock"}}

// onRedis returns the subject of a redisLock. names lists its planted faults, separated by spaces. claimed lists its
// claims other than exclusion and recovery; it always claims these two.
func onRedis(names string, claimed ...func(*strategies.Claims)) subject {
	f := faultsOf(names)
	info := strategies.Info{
		Name: "redis", Claims: claims(append(claimed, recovery)...), Capacity: 1, Nodes: 1,
		Persistent: []string{"{key}:fence"}, NoCluster: "its keys are in several slots", Limits: byRedis,
	}
	if f["tags"] {
		info.NoCluster = ""
	}
	if !f["polls"] {
		info.Connections.PerWaiter = 1
	}
	return subject{info: info, open: func(c goredis.Config) (strategies.Locker, error) {
		return newRedisLock(f, info.Claims.Watchdog, c)
	}}
}

// polling does the same as onRedis, but the waiters of its lock poll.
func polling(names string, claimed ...func(*strategies.Claims)) subject {
	return onRedis("polls "+names, claimed...)
}

// inProcess returns the subject of a localLock that allows only one instance. names lists its planted faults, and
// permits is its capacity.
func inProcess(names string, permits int, claimed ...func(*strategies.Claims)) subject {
	f := faultsOf(names)
	info := strategies.Info{
		Name: "local", Claims: claims(claimed...), Capacity: permits, MaxInstances: 1,
	}
	return subject{info: info, open: func(c goredis.Config) (strategies.Locker, error) {
		return newLocalLock(f, permits, c, &localKeys{keys: map[string]*localQueue{}}), nil
	}}
}

// inCohorts returns the subject of a localLock with several instances, which get the lock in turn. names lists its
// planted faults.
func inCohorts(names string) subject {
	s, keys := inProcess("", 1, bounded), &localKeys{keys: map[string]*localQueue{}}
	s.info.MaxInstances = 0
	s.open = func(c goredis.Config) (strategies.Locker, error) {
		return newLocalLock(faultsOf("goesRound "+names), 1, c, keys), nil
	}
	return s
}

// ofNodes returns the subject of a quorumLock on five nodes. names lists its planted faults.
func ofNodes(names string) subject {
	f := faultsOf(names)
	info := strategies.Info{
		Name: "quorum", Claims: claims(recovery), Capacity: 1, Nodes: 5,
		NoCluster: "its nodes are independent", Limits: slices.Concat(byRedis, []strategies.Limit{
			{Check: "hanging server", Because: "it waits for the answers of all nodes"},
			{Check: "refused release", Because: "it repeats no release"},
		}),
	}
	return subject{info: info, open: func(c goredis.Config) (strategies.Locker, error) {
		return newQuorumLock(f, c), nil
	}}
}

func (s subject) called(name string) subject { s.name = name; return s }

// but lets change edit the subject's Info, and returns the subject.
func (s subject) but(change func(*strategies.Info)) subject { change(&s.info); return s }

// fails sets the name of the check that must detect the subject's fault. A failure must contain at least one of the
// texts in seen. The promise that must be reported as broken is that of the check, unless breaking sets another one.
func (s subject) fails(name string, seen ...string) subject {
	checks := locktest.Checks()
	i := slices.IndexFunc(checks, func(c locktest.Check) bool { return c.Name == name })
	s.check, s.promise, s.seen = name, checks[i].Promise, seen
	return s
}

func (s subject) breaking(promise string, also ...string) subject {
	s.promise, s.also = promise, also
	return s
}

// fixture returns a fixture with servers, for all checks of the subject.
func (s subject) fixture(t *testing.T) locktest.Fixture {
	t.Helper()
	f := redisservers.Fixture(t, s.info.Nodes, s.open)
	f.Rounds, f.Drawings = 6, t.TempDir()
	if s.check != "" {
		f.Patience = 8 * time.Second // short, because most faults show only after the patience
		if s.check != "failover" {
			f.Failover = nil
		}
	}
	return f
}

// judge runs the check that must detect the subject's fault, or all checks if the lock is correct. It runs each check
// once, as users do, and reports every unexpected result.
func (s subject) judge(t *testing.T) {
	fixture, checks := s.fixture(t), locktest.Checks()
	if s.check != "" {
		checks = []locktest.Check{check(t, s.check)}
	}
	var results []locktest.Result
	for _, check := range checks {
		v := check.Judge(t.Context(), fixture, s.info)
		results = append(results, v)
		t.Log(v, v.Took, v.Log)
	}
	for _, wrong := range s.wrong(results) {
		t.Error(wrong)
	}
}

// found reports whether a failure in the result names the expected promise and contains one of the expected texts.
func (s subject) found(v locktest.Result) bool {
	return slices.ContainsFunc(v.Failures, func(f locktest.Failure) bool {
		return f.Check == s.check && f.Promise == s.promise &&
			slices.ContainsFunc(s.seen, func(text string) bool { return strings.Contains(f.String(), text) })
	})
}

// wrong returns an error message for each unexpected result. If the lock has a planted fault that no result reports, it
// returns a message for this, too.
func (s subject) wrong(results []locktest.Result) (wrong []string) {
	for _, v := range results {
		if v.Verdict == locktest.NotTried || v.Verdict == locktest.NotJudged {
			wrong = append(wrong, v.String())
		}
		if v.Verdict == locktest.Admitted {
			continue
		}
		for _, f := range v.Failures {
			if f.Promise != s.promise && !slices.Contains(s.also, f.Promise) {
				wrong = append(wrong, fmt.Sprintf("%s reports a promise as broken that is not: %s", f.Check, f))
			}
		}
	}
	if s.check != "" && !slices.ContainsFunc(results, s.found) {
		wrong = append(wrong, fmt.Sprintf("check %q did not report %q", s.check, s.seen))
	}
	return wrong
}

func TestSuite(t *testing.T) {
	subjects := append(correct(), broken()...)
	slices.SortStableFunc(subjects, func(a, b subject) int { return cmp.Compare(b.info.Nodes, a.info.Nodes) })
	var all errgroup.Group
	all.SetLimit(20) // they mostly wait, so they need little CPU time
	for _, s := range subjects {
		all.Go(func() error { t.Run(s.name, s.judge); return nil })
	}
	_ = all.Wait()
}

// correct returns locks that must pass all checks. The correct quorum is included only in make others. In make test,
// the tests of package redlock already cover a correct quorum.
func correct() []subject {
	all := []subject{
		onRedis("", fencing, reentrant, watchdog).called("a correct lock on Redis"),
		polling("tags", fencing, reentrant, watchdog).called("a correct lock that is polled, also on clusters"),
		inProcess("", 1, fifo, fencing, reentrant).called("a correct lock in the process"),
		inProcess("", 3, fifo).called("a correct semaphore"),
		inCohorts("").called("a correct lock that serves all waiters of an instance in turn"),
		inProcess("", 1, bounded).called("a correct lock in the process that claims less"),
	}
	if extent.More() {
		all = append(all, ofNodes("").called("a correct quorum"))
	}
	return all
}

// Each of these promises may be reported as broken by several checks, in addition to or instead of the promise of the
// check itself.
const (
	exclusive = "never more holders than permits"
	tidy      = "there are no leftovers"
	waking    = "no wake-up is lost"
	ungranted = "a lock that is granted after its client has given up is freed"
)

// broken returns locks, each with one planted fault and the check that must detect this fault.
func broken() []subject {
	const again, left = "before a client that had requested it earlier", "keys and channels are left"
	const stands = "have not got the lock"
	return []subject{
		// These faults break exclusion.
		polling("everyFifth").called("every fifth wait is granted although another client holds the lock").
			fails("exclusion", "its diagram is in "),
		inProcess("morePermits", 3).called("one permit more").
			fails("permits", "1 more leases than the 3 permits were granted").breaking(exclusive),
		inProcess("morePermits", 1).called("one holder more").fails("exclusion", "found more holders than permits"),

		// These faults let a client release a lock that it does not hold.
		polling("blind").called("a release that does not check the owner").
			fails("stranger", "the release of an ended lease freed the next holder's lock"),
		polling("sameToken").called("one owner token for all callers of an instance").
			fails("stranger", "a release of a lock that another client holds returned <nil>"),
		polling("blind ownRecord").called("a late release frees the next holder's lock").
			fails("late release", "a late release freed the next holder's lock"),
		polling("lateIsFine ownRecord").called("a late release returns no error").
			fails("late release", "returned <nil>, want ErrNotHeld"),

		// These are faults of TTLs, validity and watchdogs.
		polling("noTTL").called("no TTL").fails("dead holder", "has died"),
		polling("halfTTL").called("half the TTL").fails("validity", "before the end of a lease's validity"),
		polling("validFromReply").called("validity counted from the reply").
			fails("validity", "reports a validity that ends"),
		polling("validFromWait handsOutLate").called("validity counted from the beginning of the wait").
			fails("validity", "before the grant"),
		polling("extendsNothing").called("Extend does nothing").fails("extend", "ended when its first TTL ran out"),
		polling("addsUp").called("Extend adds to what is left").fails("extend", "extensions add up"),
		polling("lockersTTL").called("a call's TTL is ignored").
			fails("TTL of a call", "returned a lease that is valid for"),
		polling("anyTTL").called("a call's TTL of 0 is the Locker's").
			fails("TTL of a call", "was granted, want an error"),
		polling("neverShorter").called("a call's TTL cannot be shorter than the Locker's").
			fails("TTL of a call", "has not run out after"),
		polling("renewsAll", watchdog).called("a watchdog that renews leases with a TTL of their own").
			fails("TTL of a call", "has not run out after", "ended when the Locker's shorter TTL ran out"),
		polling("noRenewal", watchdog).called("a watchdog that renews nothing").
			fails("watchdog", "a living holder's lease ran out"),
		polling("renewsFirstOnly", watchdog).called("a watchdog of an instance's first lease only").
			fails("watchdog", "a living holder's lease ran out"),
		polling("renewsBlindly", watchdog).called("a watchdog that does not check the owner").
			fails("watchdog", "does not check the owner"),
		polling("renewsForEver", watchdog).called("a watchdog that keeps running after the release").
			fails("watchdog", "of a living holder only: "),
		polling("outlivesClose", watchdog).called("a watchdog that outlives its process").
			fails("watchdog", "keeps renewing its lease"),

		// These faults strand waiters or break cancelled waits.
		onRedis("noRecheck").called("no check of the lock after subscribing").
			fails("release before the wait", "just before its command"),
		onRedis("trustsMessages").called("waiters that rely on messages only").
			fails("silent subscription", "fell silent while it waited"),
		onRedis("noResubscribe").called("no check of the lock after a reconnection").
			fails("release during a reconnect", "while it reconnected"),
		polling("noSettling").called("an acquire without an answer is never released").
			fails("lost reply", "its lock is not free"),
		inProcess("deaf", 1).called("the context is ignored").
			fails("cancelled wait", "keeps waiting although its context has ended"),
		inProcess("ghosts", 1).called("a waiter that gave up is granted the lock").
			fails("cancelled at any moment", "all clients have released the lock or given up").breaking(ungranted),
		inProcess("skipsNone", 1).called("a waiter that gave up is woken").
			fails("cancelled at any moment", "behind waiters that gave up").breaking(waking),
		polling("tryWaits").called("a try-lock that waits").fails("try-lock", "made 4 attempts"),
		inProcess("shares", 1).called("the callers of an instance are one owner").
			fails("try-lock", "another caller of its instance held").breaking(exclusive),
		inProcess("swaps", 1, fifo).called("every second waiter jumps the queue").
			fails("fifo", "although it was waiter"),
		inCohorts("forEver").called("an instance passes the lock to its own newcomers forever").
			fails("overtaking", again),
		inCohorts("barges").called("an instance that has released the lock gets it again next").
			fails("overtaking", again),
		inProcess("lastFirst", 1, bounded).called("the last waiter is served first").fails("overtaking", again),

		// These faults leave keys, connections or goroutines behind.
		onRedis("registers").called("a waiter that gave up stays registered").fails("given-up waits", left),
		onRedis("registers").called("a waiter that gave up stays registered, and the lock's key may stay").
			but(func(i *strategies.Info) { i.Persistent = []string{"{key}:fence", "{key}"} }).
			fails("given-up waits", left),
		onRedis("keepsSubscribed").called("a waiter that gave up stays subscribed").fails("given-up waits", left),
		onRedis("keepsConnection").called("a waiter that gave up leaves a connection").
			fails("given-up waits", "connections are left"),
		onRedis("keepsGoroutine").called("a waiter that gave up leaves a goroutine").
			fails("given-up waits", "goroutines are left"),
		polling("dialsItself leavesClient").called("Close leaves a connection that the lock has dialled itself").
			fails("acquire and release", "connections are left").breaking(tidy),
		polling("dialsItself leavesGoroutine").called("Close leaves a goroutine").
			fails("acquire and release", "goroutines are left").breaking(tidy),

		// These are faults of fencing tokens, owners, permits and keys.
		inProcess("repeats", 1, fencing).called("every third fencing token repeats").fails("fencing", "was granted twice"),
		polling("tokensGoBack", fencing).called("fencing tokens go back").fails("fencing", "came after"),
		inProcess("forgetful", 1, reentrant).called("an owner that acquires again is not recognised").
			fails("re-entrance", "the owner's second acquire waits for the owner"),
		polling("firstRelease", reentrant).called("the first release frees").
			fails("re-entrance", "the lock was free after 1 of 3 releases"),
		inProcess("oneAtATime", 3).called("one wake-up at a time").
			fails("permits", "3 permits were released, but"),
		inProcess("robs", 1).called("Close takes the locks from their holders").fails("closed", "lock not held"),
		inProcess("neverCloses", 1).called("Close does nothing").
			fails("closed", "an acquire after Close was granted"),
		polling("hashTag").called("the key is the text inside its braces").
			fails("strange keys", "also locks the key with an x added").
			breaking("every string is a separate "+
				"key", tidy), // the fencing counter of a lock has the name of no lock that the check used

		// These faults show only when servers or the network fail.
		polling("evalsha").called("a release relies on the script cache").fails("flushed scripts", "NOSCRIPT"),
		ofNodes("half").called("half of the nodes is enough").fails("dead nodes", "only 2 of 5 nodes were alive"),

		polling("handsOutLate").called("a late answer is not compared with the clock").
			fails("slow answer", "while another client held the lock"),
		polling("looksFirst").called("a release that checks the owner and deletes in two steps").
			fails("late commands", "freed the next holder's lock"),
		polling("extendsBlindly").called("an extension that does not check the owner").
			fails("late commands", "of a stale extension arrived late"),
		polling("silenceIsYes").called("a missing answer counts as a grant").
			fails("lost answers", "another client held the lock").breaking(exclusive),
		polling("deletesAgain").called("a repeated release does not check the owner").
			fails("lost answers", "freed the next holder's lock"),
		polling("watchesDoubt", watchdog).called("a watchdog renews a lease that was never granted").
			fails("lost answers", "is not free", "was never freed"),
		polling("expiresLater").called("the TTL is set by a second command, whose error leaves the key without TTL").
			fails("lost answers", "is not free", "was never freed"),
		polling("expiresLater forgives").called("the TTL is set by a second command, whose error is ignored").
			fails("lost answers", "is not free", "was never freed"),
		polling("persistsFirst").called("an extension that fails in the middle leaves no TTL").
			fails("lost answers", "is not free", "was never freed"),
		polling("asksOnce").called("a repeated release sends nothing").
			fails("cancelled release", "the waiter has not got the lock"),
		polling("stopsAfter", watchdog).called("a watchdog that stops after the release").
			fails("abandoned release", "its watchdog keeps running"),
		polling("watchesDoubt", watchdog).called("a watchdog renews the lease of an abandoned acquire").
			fails("abandoned acquire", "its watchdog keeps running"),
		polling("tellsLoss", watchdog).called("a release counts as a loss").
			fails("renewal and release", "was reported as lost"),
		polling("refusalIsYes writesFirst").called("a refusal counts as a grant").
			fails("refused writes", "granted"),
		polling("waitsForAnswers").called("calls wait for their answers beyond their contexts").
			fails("hanging server", "has not returned after"),
		polling("noSettling").called("an acquire that hung is never released").
			fails("hanging server", "is not free"),
		polling("reportsLate", watchdog).called("a watchdog that waits for its renewals").
			fails("loss in time", "must be reported as lost, but it is not"),
		polling("forgetsRelease").called("a release is not repeated").fails("refused release", "is not free"),
		polling("givesUp").called("a release that was refused is forgotten").fails("refused writes", stands),
		polling("refusalIsYes").called("a replica's refusal counts as a grant").
			fails("failover", "was granted while"),
		polling("pinsAddress").called("an address that is never resolved again").fails("failover", stands),
		onRedis("staysBehind").called("subscriptions stay at the old primary").
			fails("sentinel", "have not got the lock"),
		polling("records").called("each lock leaves a key").fails("idle keys", "idle locks left behind"),
		polling("dialsEach").called("each lock keeps a connection").
			fails("connections", "connections outside its pool"),
		onRedis("").called("undeclared connections of waiters").
			but(func(i *strategies.Info) { i.Connections = strategies.Connections{} }).
			fails("connections", "connections outside its pool"),
		polling("tags pinsSlots").called("slots that are never loaded again").fails("moving slot", stands),
		onRedis("believes").called("any message counts as a grant").
			fails("forged messages", "was granted while"),
		onRedis("namesIt deletesNamed").called("a key named by a message is deleted").
			fails("forged messages", "deleted a key that does not belong to a lock"),
		polling("tags pinsSlots").called("slots that are never loaded again, and a node dies").
			fails("dying node", stands),
		polling("").called("leases end by a clock that can be set").
			but(func(i *strategies.Info) { i.Limits = nil }).fails("clock set forward", "got the lock while"),
		polling("tokensAreTime", fencing).called("tokens are the time").fails("clock set back", "came after"),
	}
}
