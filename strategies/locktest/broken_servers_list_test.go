package locktest_test

// brokenByServers are correct locks with one fault each, which shows when servers or
// networks fail.
func brokenByServers() []subject {
	const (
		exclusive  = "never more holders than permits"
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
	with := func(f serverFault) fault { return fault{serverFault: f} }
	script := func(from, to string) fault { return fault{script: [2]string{from, to}} }
	return []subject{
		polling(with(serverFault{handsOutLate: true}), 0).called("no look at the clock when an answer came late").
			breaks("slow answer", alive, "and another has the lock"),

		polling(with(serverFault{looksFirst: true}), 0).called("a look whose lock it is, and then its end").
			breaks("late commands", belated, "freed the next holder's lock"),
		polling(script("if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end\nreturn redis.call('PEXPIRE'", "return redis.call('PEXPIRE'"), 0).
			called("no look whose lock it extends").
			breaks("late commands", belated, "of a stale extension came late"),

		polling(with(serverFault{silenceIsYes: true}), 0).called("silence is taken for a grant").
			breaks("lost answers", exclusive, "while another held the lock"),
		polling(with(serverFault{deletesAgain: true}), 0).called("a release is asked again without a look").
			breaks("lost answers", unanswered, "freed the lock of the next holder"),
		polling(with(serverFault{watchesDoubt: true}), watchdog).waitingInVain().called("a watchdog keeps what was never granted").
			breaks("lost answers", unanswered, "is not free"),

		polling(with(serverFault{asksOnce: true}), 0).waitingInVain().called("a release that is repeated asks nothing").
			breaks("cancelled release", cancelling, "who waits has not got the lock"),
		polling(with(serverFault{stopsAfter: true}), watchdog).waitingInVain().called("a watchdog that stops after the release").
			breaks("abandoned release", abandoning, "its watchdog goes on"),
		polling(with(serverFault{tellsLoss: true}), watchdog).called("a release is taken for a loss").
			breaks("renewal and release", quietly, "was told to be lost"),

		polling(fault{script: [2]string{"local owner", "redis.call('INCRBY', KEYS[2], 0) local owner"}, serverFault: serverFault{refusalIsYes: true}}, 0).
			called("a refusal is taken for a grant").
			breaks("refused writes", refusing, "granted"),
		polling(with(serverFault{givesUp: true}), 0).waitingInVain().called("a release that was refused is forgotten").
			breaks("refused writes", refusing, "have not had it"),
		polling(with(serverFault{refusalIsYes: true}), 0).called("a replica's refusal is taken for a grant").
			breaks("failover", failing, "was granted while"),
		polling(with(serverFault{pinsAddress: true}), 0).waitingInVain().called("an address that is never asked for again").
			breaks("failover", failing, "have not had it"),

		polling(with(serverFault{records: true}), 0).waitingInVain().called("each lock leaves a key").
			breaks("idle keys", sparing, "keys and channels are left"),
		polling(with(serverFault{dialsEach: true}), 0).waitingInVain().called("each lock keeps a connection").
			breaks("connections", few, "connections beside its pool"),
		onRedis(fault{}, 0).declaringNone().waitingInVain().called("connections of waiters that are not declared").
			breaks("connections", few, "connections beside its pool"),

		polling(with(serverFault{tags: true, pinsSlots: true}), 0).onCluster().waitingInVain().
			called("slots that are never asked for again").
			breaks("moving slot", moving, "have not had it"),

		onRedis(with(serverFault{believes: true}), 0).called("any message is taken for a grant").
			breaks("forged messages", unforged, "was granted while"),
		onRedis(fault{script: [2]string{"ARGV[2], ''", "ARGV[2], KEYS[1]"}, serverFault: serverFault{deletesNamed: true}}, 0).
			called("what a message names is deleted").
			breaks("forged messages", unforged, "deleted a key that is no lock"),

		polling(with(serverFault{tags: true, pinsSlots: true}), 0).onCluster().waitingInVain().
			called("slots that are never asked for again, and a node dies").
			breaks("dying node", dying, "have not had it"),

		polling(fault{}, 0).withoutLimits().called("leases end by a clock that may be set").
			breaks("clock set forward", forward, "got the lock while"),
		polling(script("redis.call('INCR', KEYS[2])", "redis.call('TIME')[1] * 1000000 + redis.call('TIME')[2]"), fencing).
			called("tokens are the time").
			breaks("clock set back", back, "came after"),
	}
}
