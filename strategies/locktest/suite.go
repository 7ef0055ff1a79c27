package locktest

import (
	"context"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// The promises of a lock, as a failure names them.
const (
	granting   = "a free lock is granted, and given back once"
	exclusive  = "never more holders than permits"
	permitted  = "as many may hold as there are permits"
	anyKey     = "any string is a key of its own"
	closing    = "Close refuses new callers and harms no holder"
	trying     = "a try-lock does not wait"
	ending     = "a wait ends with its context"
	yielding   = "a wait that ends takes neither lock nor wake-up with it"
	tidy       = "there are no leftovers"
	inOrder    = "first come, first served"
	bounded    = "nobody is overtaken again and again"
	growing    = "fencing tokens grow"
	again      = "the owner may acquire again, and releases as often"
	ownersOnly = "only the owner releases"
	recovering = "a dead holder's lock frees by itself"
	late       = "a late release is told so and harms nobody"
	extending  = "an extended lease lasts"
	valid      = "a lease is valid no longer than Redis keeps it"
	ownTerm    = "the TTL of a call is its lease's"
	watching   = "a living holder keeps its lease, and no other does"
	waking     = "no wake-up is lost"
	scripting  = "a flushed script cache is filled again"
	ungranted  = "a lock that was granted to nobody is freed"
	returning  = "a restarted server is found again"
	majority   = "a majority of the nodes is enough, and needed"
)

// Check is one check of the suite. It tests one promise, although it may find others broken.
type Check struct {
	Name    string
	Promise string // as a Failure calls it
	Proves  string // what a pass proves of a lock, in a sentence

	needs needs
	run   func(*stage)
}

// needs are what a lock must claim, or be, for a check to apply.
type needs []need

// need returns why a lock does not meet it; "" means that it does.
type need func(strategies.Info) string

// unless returns a need that is met where holds is true; elsewhere the need returns why.
func unless(holds func(strategies.Info) bool, why string) need {
	return func(i strategies.Info) string {
		if holds(i) {
			return ""
		}
		return why
	}
}

// claimed returns the need for a guarantee.
func claimed(what string, made func(strategies.Claims) bool) need {
	return unless(func(i strategies.Info) bool { return made(i.Claims) }, "it does not claim "+what)
}

// What a lock must be for most checks, and what it must be for some of them besides.
var (
	excludes = needs{
		claimed("exclusion", func(c strategies.Claims) bool { return c.Exclusion }),
		unless(func(i strategies.Info) bool { return i.Capacity > 0 }, "it does not limit its holders"),
	}
	shares   = excludes.and(unless(func(i strategies.Info) bool { return i.Capacity > 1 }, "it has one permit"))
	recovers = excludes.and(claimed("recovery", func(c strategies.Claims) bool { return c.Recovery }))
	onRedis  = excludes.and(
		unless(func(i strategies.Info) bool { return i.Nodes > 0 }, "it lives in the process, on no server"),
		unless(strategies.Info.OnRedis, "it locks in another store than Redis"))
	onNodes = excludes.and(unless(func(i strategies.Info) bool { return i.Nodes > 1 }, "it is no quorum of several nodes"))
	queues  = excludes.and(claimed("FIFO", func(c strategies.Claims) bool { return c.FIFO }))
	bounds  = excludes.and(
		claimed("bounded overtaking", func(c strategies.Claims) bool { return c.Bounded || c.FIFO }),
		unless(func(i strategies.Info) bool { return i.Capacity == 1 }, "it has several permits"))
	fences   = excludes.and(claimed("fencing", func(c strategies.Claims) bool { return c.Fencing }))
	reenters = excludes.and(claimed("re-entrance", func(c strategies.Claims) bool { return c.Reentrant }))
	watches  = excludes.and(claimed("a watchdog", func(c strategies.Claims) bool { return c.Watchdog }))
)

// missing returns why a lock does not meet the needs; "" means that it does.
func (n needs) missing(info strategies.Info) string {
	for _, need := range n {
		if why := need(info); why != "" {
			return why
		}
	}
	return ""
}

func (n needs) and(more ...need) needs { return append(n[:len(n):len(n)], more...) }

// Inapplicable returns why the check does not apply to such a lock, such as "it does not
// claim fencing"; "" means that it applies.
func (c Check) Inapplicable(info strategies.Info) string { return c.needs.missing(info) }

// Judge runs the check on a fixture, until the check is over or ctx has ended. Only calls of
// the lock that never return stay behind.
func (c Check) Judge(ctx context.Context, fixture Fixture, info strategies.Info) Verdict {
	v := Verdict{Check: c.Name, Proves: c.Proves}
	if why := c.Inapplicable(info); why != "" {
		v.Outcome, v.Because = NotApplicable, why
		return v
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
	s.conclude(&v)
	v.admit(info)
	v.Took = time.Since(began)
	return v
}

// Checks returns all checks, in the order in which they are run.
func Checks() []Check {
	return append([]Check{
		{"acquire and release", granting, "A free lock is granted and given back, and who gives it back twice is told that he did not hold it.", nil, acquireAndRelease},
		{"closed", closing, "After Close nobody is granted a lock, and those who hold one can still give it back.", excludes, closed},
		{"strange keys", anyKey, "Every string is a key of its own: with braces, spaces, zero bytes, letters of all scripts, a kilobyte of them, or empty.", excludes, strangeKeys},
		{"exclusion", exclusive, "Clients of three instances that fight for one key are never inside at a time, and what they were answered is what one lock can have answered.", excludes, exclusion},
		{"permits", permitted, "As many hold a semaphore as it has permits, and as many waiters get in as permits are given back.", shares, permits},
		{"stranger", ownersOnly, "A lease that was given back cannot free the lock that somebody else holds by now.", excludes, stranger},
		{"try-lock", trying, "A try-lock returns at once: refused while another holds the lock, granted when it is free.", excludes, tryLock},
		{"cancelled wait", ending, "A wait ends with its context, by deadline or by cancel, with the context's error and without the lock.", excludes, cancelledWait},
		{"cancelled at any moment", yielding, "Waits that are cancelled at any moment around a release keep neither the lock nor the wake-up from those behind them.", excludes, cancelledAnytime},
		{"given-up waits", tidy, "Waits that were given up leave no key, channel, connection or goroutine behind.", excludes, givenUpWaits},
		{"fifo", inOrder, "Waiters of three instances are served in the order in which they came.", queues, fifo},
		{"overtaking", bounded, "No client is served again and again before one who asked earlier, however fast it comes back.", bounds, overtaking},
		{"fencing", growing, "Each lease's token is larger than all before it, in all instances and after a holder's death.", fences, fencing},
		{"re-entrance", again, "An owner acquires again what it holds, nobody else does, and the lock is free after as many releases.", reenters, reentrance},
		{"dead holder", recovering, "The lock of a holder that died is granted to a waiter after the TTL.", recovers, deadHolder},
		{"late release", late, "Who releases or extends a lease after it ran out is told so, and the next holder keeps the lock.", recovers, lateRelease},
		{"extend", extending, "A lease that was extended outlasts its first TTL.", recovers, extend},
		{"validity", valid, "A lease is said to be valid no longer than its TTL from before it was asked for, and nobody else gets the lock in that time.", recovers, validity},
		{"TTL of a call", ownTerm, "A lease with a TTL of its own lasts that long, longer or shorter than its Locker's, and is not renewed; a TTL below a millisecond is refused.", recovers, callTTL},
		{"watchdog", watching, "Each lease of a living holder is renewed beyond its TTL, that of a dead one is not, and a lock that was given back or taken by another is left alone.", watches, watchdog},
		{"release before the wait", waking, "A release between any two commands of a waiter on its way to its wait reaches it.", onRedis, releaseBeforeTheWait},
		{"release during a reconnect", waking, "A release while a waiter's connection is cut, or between any two commands with which it comes back, reaches it.", onRedis, releaseDuringReconnect},
		{"killed connections", waking, "Waiters whose connections are killed just before a release get the lock.", onRedis, killedConnections},
		{"flushed scripts", scripting, "Acquire, wait and release work after the servers have forgotten all scripts.", onRedis, flushedScripts},
		{"lost reply", ungranted, "A lock that a server granted to somebody who had given up by then is freed, long before its TTL.", onRedis, lostReply},
		{"restarted server", returning, "When a server comes back empty all waits end, and the same instances work on.", onRedis, restartedServer},
		{"dead nodes", majority, "A quorum works on without a minority of its nodes, grants nothing without a majority, and recovers.", onNodes, deadNodes},
	}, faultChecks()...)
}
