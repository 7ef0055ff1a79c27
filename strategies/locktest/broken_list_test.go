package locktest_test

import "strings"

// broken are correct locks with one fault each.
func broken() []subject {
	// The promises, in the suite's words.
	const (
		exclusive  = "never more holders than permits"
		permitted  = "as many may hold as there are permits"
		anyKey     = "any string is a key of its own"
		closing    = "Close refuses new callers and harms no holder"
		trying     = "a try-lock does not wait"
		ending     = "a wait ends with its context"
		tidy       = "there are no leftovers"
		inOrder    = "first come, first served"
		notAgain   = "nobody is overtaken again and again"
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
		majority   = "a majority of the nodes is enough, and needed"
	)
	script := func(from, to string) fault { return fault{script: [2]string{from, to}} }
	const expire = "redis.call('PEXPIRE', KEYS[1], ARGV[2])\nreturn {1"
	return append([]subject{
		// Exclusion.
		polling(fault{everyNth: 5}, 0).called("every fifth wait is granted what another holds").
			breaks("exclusion", exclusive, "it is drawn in "),
		inProcess(localFault{morePermits: 1}, 3, 0).called("one permit more").
			breaks("permits", exclusive, "1 more than 3 permits were granted"),
		inProcess(localFault{morePermits: 1}, 1, 0).called("one holder more").
			breaks("exclusion", exclusive, "found more inside than may be"),

		// Who releases what.
		polling(fault{blind: true}, 0).called("no look whose lock it releases").
			breaks("stranger", ownersOnly, "a stranger's release freed the lock"),
		polling(fault{sameToken: true}, 0).called("one token for all of an instance").
			breaks("stranger", ownersOnly, "a release of what is another's returned <nil>"),
		polling(fault{blind: true, ownRecord: true}, 0).called("a late release frees the next holder's lock").
			breaks("late release", late, "a late release freed the next holder's lock"),
		polling(fault{lateIsFine: true, ownRecord: true}, 0).called("a late release is not told so").
			breaks("late release", late, "returned <nil>, want ErrNotHeld"),

		// Time.
		polling(script(expire, "return {1"), 0).waitingInVain().called("no TTL").
			breaks("dead holder", recovering, "has died"),
		polling(script("PEXPIRE', KEYS[1], ARGV[2])\nreturn {1", "PEXPIRE', KEYS[1], ARGV[2] / 2)\nreturn {1"), 0).called("half the TTL").
			breaks("validity", valid, "before a lease on it ceased to be valid"),
		polling(fault{validFromReply: true}, 0).called("validity counted from the reply").
			breaks("validity", valid, "is said to be valid for longer"),
		polling(script("return redis.call('PEXPIRE', KEYS[1], ARGV[2])", "return 1"), 0).called("Extend does nothing").
			breaks("extend", extending, "ran out with its first TTL"),
		polling(fault{lockersTTL: true}, 0).called("a call's TTL is ignored").
			breaks("TTL of a call", ownTerm, "gave a lease that is valid for"),
		polling(fault{anyTTL: true}, 0).called("a call's TTL of 0 is the Locker's").
			breaks("TTL of a call", ownTerm, "was granted, want an error"),
		polling(fault{neverShorter: true}, 0).waitingInVain().called("a call's TTL cannot be shorter than the Locker's").
			breaks("TTL of a call", ownTerm, "keeps the lock from others"),
		polling(fault{renewsAll: true}, watchdog).waitingInVain().called("a watchdog that renews leases with a TTL of their own").
			breaks("TTL of a call", ownTerm, "is kept by the watchdog"),
		polling(fault{noRenewal: true}, watchdog).called("a watchdog that sleeps").
			breaks("watchdog", watching, "a living holder's lease ran out"),
		polling(fault{renewsFirstOnly: true}, watchdog).called("a watchdog of an instance's first lease only").
			breaks("watchdog", watching, "a living holder's lease ran out"),
		polling(fault{renewsBlindly: true}, watchdog).waitingInVain().called("a watchdog that does not ask whose lock it renews").
			breaks("watchdog", watching, "does not ask whose it is"),
		polling(fault{renewsForEver: true}, watchdog).waitingInVain().called("a watchdog that goes on after the release").
			breaks("watchdog", watching, "and no other does: "),
		polling(fault{outlivesClose: true}, watchdog).waitingInVain().called("a watchdog that outlives its process").
			breaks("watchdog", watching, "a dead holder's lease is kept"),

		// Waiting.
		onRedis(fault{noRecheck: true}, 0).waitingInVain().called("no look after subscribing").
			breaks("release before the wait", waking, "just before its command number"),
		onRedis(fault{noResubscribe: true}, 0).waitingInVain().called("no look after a reconnection").
			breaks("release during a reconnect", waking, "while it reconnected"),
		polling(fault{noSettling: true}, 0).waitingInVain().called("an acquire without an answer is left to itself").
			breaks("lost reply", ungranted, "its lock is not free"),
		inProcess(localFault{deaf: true}, 1, 0).waitingInVain().called("the context is ignored").
			breaks("cancelled wait", ending, "goes on although its context has ended"),
		inProcess(localFault{ghosts: true}, 1, 0).waitingInVain().called("who gave up is granted the lock").
			breaks("cancelled at any moment", ungranted, "everybody has released the lock or given up"),
		inProcess(localFault{skipsNone: true}, 1, 0).waitingInVain().called("who gave up is woken").
			breaks("cancelled at any moment", waking, "behind others who gave up"),
		polling(fault{tryWaits: true}, 0).called("a try-lock that waits").
			breaks("try-lock", trying, "tried 4 times"),
		inProcess(localFault{swaps: true}, 1, fifo).called("every second waiter jumps the queue").
			breaks("fifo", inOrder, "when it was waiter"),
		inCohorts(cohortFault{forEver: true}).called("an instance passes the lock to its own newcomers for ever").
			breaks("overtaking", notAgain, "before one who had asked earlier"),
		inCohorts(cohortFault{barges: true}).called("an instance that has given the lock up is the next again").
			breaks("overtaking", notAgain, "before one who had asked earlier"),
		inProcess(localFault{lastFirst: true}, 1, bounded).called("who comes last is served first").
			breaks("overtaking", notAgain, "before one who had asked earlier"),

		// What is left.
		onRedis(fault{registers: true}, 0).waitingInVain().called("who gave up stays registered").
			breaks("given-up waits", tidy, "keys and channels are left"),
		onRedis(fault{registers: true}, 0).keeping("{key}").waitingInVain().called("who gave up stays registered, where the lock's key may stay").
			breaks("given-up waits", tidy, "keys and channels are left"),
		onRedis(fault{keepsSubscribed: true}, 0).waitingInVain().called("who gave up stays subscribed").
			breaks("given-up waits", tidy, "keys and channels are left"),
		onRedis(fault{keepsConnection: true}, 0).waitingInVain().called("who gave up leaves a connection").
			breaks("given-up waits", tidy, "connections are left"),
		onRedis(fault{keepsGoroutine: true}, 0).waitingInVain().called("who gave up leaves a goroutine").
			breaks("given-up waits", tidy, "goroutines are left"),

		// Tokens, owners, permits, keys.
		inProcess(localFault{repeats: true}, 1, fencing).called("every third fencing token repeats").
			breaks("fencing", growing, "came twice"),
		polling(script("redis.call('INCR', KEYS[2])", "redis.call('INCR', KEYS[2]) % 7"), fencing).called("fencing tokens go back").
			breaks("fencing", growing, "came after"),
		inProcess(localFault{forgetful: true}, 1, reentrant).waitingInVain().called("an owner is not known again").
			breaks("re-entrance", again, "the owner waits for itself"),
		polling(fault{firstRelease: true}, reentrant).called("the first release frees").
			breaks("re-entrance", again, "it was free after 1 of 3 releases"),
		inProcess(localFault{oneAtATime: true}, 3, 0).waitingInVain().called("one wake-up at a time").
			breaks("permits", permitted, "3 permits were given back, and"),
		inProcess(localFault{robs: true}, 1, 0).called("Close takes the locks from their holders").
			breaks("closed", closing, "lock not held"),
		inProcess(localFault{neverCloses: true}, 1, 0).called("Close does nothing").
			breaks("closed", closing, "an acquire after Close was granted"),
		polling(fault{key: hashTag}, 0).waitingInVain().called("the key is what its braces hold").
			breaks("strange keys", anyKey, "is the same as with an x added", tidy), // a counter of no lock's name

		// Servers.
		polling(fault{evalsha: true}, 0).waitingInVain().called("a release relies on the script cache").
			breaks("flushed scripts", scripting, "NOSCRIPT"),
		ofNodes(quorumFault{half: true}).called("half of the nodes is enough").
			breaks("dead nodes", majority, "was granted by 2 of 5 nodes"),
	}, brokenByServers()...)
}

// hashTag is what a cluster hashes of a key.
func hashTag(key string) string {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}
