//go:build !race

// Package model searches a model of the lock's protocol for violations of the properties that ../DESIGN.md argues for.
// It has only tests.
//
// A world is one lock at a server, two processes with three clients, and everything in transit between them. A real
// Redis executes SET, RPUSHX and the scripts of this repository on the lock (scripts_test.go). process_test.go and
// lease_test.go implement the process, with local passing, slots, pending releases, checks and confirmations.
// step_test.go lists the possible next steps. search_test.go visits every reachable world, those that need the fewest
// steps first. It checks that at most one client holds the lock, that no token decreases or is granted twice, that no
// valid lease is reported as lost, and that all clients can still get the lock. After a fault they must be able to get
// it before a lease without a holder expires. Without a fault they must be able to get it without a check. The test
// prints the shortest path to a violation. It must also find planted mistakes, some of which were once made in the real
// protocol.
//
// laws_test.go has the laws that each script must satisfy for every command in every small state of the lock.
//
// With LOCKBENCH_MODEL=1 (make soak) the tests search further, for minutes: they then search most of the faults with
// three clients completely, and also search for the mistakes that take the most worlds to find.
//
// # What the model lacks
//
//   - The Lua scripts are executed, but the Go code of the processes is not. A change of the Go code must be
//     repeated in the model by hand, and the Go code may be wrong where the model is right.
//   - A process has one local queue for the lock, and one check at a time. In the Go code, callers with different TTLs
//     have separate local queues, whose checks run at the same time (TestGrantedSlotIsNotReleased).
//   - A TTL is one tick, so a lease is valid for its whole TTL or has expired. Worlds in which time passes are searched
//     for two processes with one client each, two ticks and few checks, and only in part unless LOCKBENCH_MODEL is set.
//     There the search checks only exclusion and tokens, not whether all clients get the lock. In all other worlds no
//     time passes, except that the leases of dead processes expire.
//   - "Can get the lock" means that all clients get it in some continuation, not in every one. The search does not
//     check the order of the clients or overtaking.
//   - There is one fault at a time (two in some tests), and it concerns one process. In the model a broken connection
//     affects one command, which is lost, late or has no reply. In reality it affects all commands on the connection.
//   - After a failover the old primary is an exact copy that refuses writes, without replication lag or loss of data.
//     The model has no Sentinel, cluster slots, MOVED or CLUSTERDOWN.
//   - The model has no Close, TryAcquire, end of patience (2 s), TTL of a queue (10 min) or clock that is set back.
//     A stopped process (SIGSTOP) is only slow, and loses no slot.
//   - If no reply can be lost, executing a command and handling a reply that grants nothing are one step. The search
//     identifies worlds by hashes of 64 bits. It does not follow a world that exceeds the sizes of its arrays
//     (4 pending releases, 6 entries, 3 messages, 2 late commands).
package model

import (
	"os"
	"slices"
	"testing"
)

// faultsOf are the faults that a search may inject between any two steps. Each search injects only one of them.
var faultsOf = []struct {
	name   string
	faults budget
}{
	{"calm", budget{}},
	{"a command or its answer is lost or late", budget{breaks: 1}},
	{"the subscription of a process breaks", budget{deaf: 1}},
	{"death", budget{deaths: 1}},
	{"cancel", budget{cancels: 1}},
	{"refused writes", budget{refusals: 1}},
	{"refused PUBLISH", budget{mutes: 1}},
	{"failover", budget{failover: 1}},
	{"a message arrives twice", budget{twice: 1}},
	{"clock step", budget{steps: 1}},
	{"lost queue", budget{losses: 1}},
	{"extend", budget{extends: 1}},
}

// goalsAfter returns the goals that every world must be able to reach despite the given faults. If time passes, there
// is no goal, because leases then expire anyway.
func goalsAfter(f budget) []goal {
	switch {
	case f.ticks > 0:
		return nil
	case f.deaths > 0:
		return []goal{everybodyServed}
	case f == budget{again: f.again}:
		return []goal{promptly}
	default:
		return []goal{nothingLeft}
	}
}

// deep is true if LOCKBENCH_MODEL is set. The tests then search more worlds than the usual test time allows.
var deep = os.Getenv("LOCKBENCH_MODEL") != ""

// After any of the faults, at most one client holds the lock, tokens increase, and all clients can still get the lock.
// If time passes, leases also expire while they are held, granted by a message in transit, released or extended. Even
// then, at most one client may hold the lock, and tokens must increase.
func TestModelIsSafeAndLive(t *testing.T) {
	few, many, late := 2_000, 8_000, budget{ticks: 2, looks: 1}
	if deep {
		few, many, late = 300_000, 1_000_000, budget{ticks: 2, looks: 2}
	}
	scripts := openScripts(t)
	for _, how := range []struct {
		name     string
		protocol protocol
		faults   budget
		limit    int
	}{
		{"one in each process", protocol{clients: apart}, budget{}, many},
		{"one in each process, more than once", protocol{clients: apart}, budget{again: 1}, few},
		{"one in each process, cluster", protocol{clients: apart, cluster: true}, budget{}, few},
		{"two in one process", protocol{clients: aPair}, budget{}, few},
		{"two in one process, passing", protocol{clients: aPair, linger: true}, budget{}, few},
		{"three", protocol{}, budget{}, few},
		{"three, passing", protocol{linger: true}, budget{}, few},
		{"time passes", protocol{clients: apart, fewLooks: true}, late, few},
		{"time passes, cluster", protocol{clients: apart, fewLooks: true, cluster: true}, late, few},
	} {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			how.protocol.scripts = scripts
			for _, f := range faultsOf {
				f.faults.again, f.faults.ticks, f.faults.looks = how.faults.again, how.faults.ticks, how.faults.looks
				s := search{protocol: &how.protocol, limit: how.limit, goals: goalsAfter(f.faults)}
				r := s.find(f.faults)
				if r.flaw != sound {
					t.Errorf("%s: %v", f.name, r)
				}
				t.Logf("%s: %d worlds, all: %v", f.name, r.seen, r.whole)
			}
		})
	}
}

// foundLast are the mistakes that a search finds only after 50,000 worlds or more. Without deep they are skipped.
var foundLast = []mistake{extendShortens, doubtConfirmed, doubtReleased, ownerOverlooked}

// The search finds every planted mistake. This shows that it would find such a mistake in the real protocol.
func TestModelFindsPlantedMistakes(t *testing.T) {
	scripts := openScripts(t)
	timed := func(f budget, ticks, looks int8) budget { f.ticks, f.looks = ticks, looks; return f }
	for _, test := range []struct {
		planted  mistake
		protocol protocol
		faults   budget
		flaw     flaw
	}{
		{offeredAgain, protocol{}, budget{failover: 1}, tokenAgain},
		{grantWithoutReceiver, protocol{clients: apart}, budget{deaths: 1}, unnotifiedWaiter},
		{grantUnmarked, protocol{}, budget{}, stuckForLook},
		{queueUnmarked, protocol{clients: apart}, budget{}, stuckForLook},
		{releaseUnseen, protocol{clients: apart}, budget{}, stuckForLook},
		{releaseUnmarked, protocol{clients: apart}, budget{}, falselyLost},
		{leaveTheQueue, protocol{clients: apart}, budget{cancels: 1}, stuckForLease},
		{extendShortens, protocol{clients: apart}, timed(budget{extends: 2, breaks: 1}, 1, 0), twoOwners},
		{trustTheOld, protocol{clients: apart, cluster: true}, budget{failover: 1, again: 1}, twoOwners},
		{noLook, protocol{clients: apart}, budget{deaf: 1}, stuckForLease},
		{staleBelieved, protocol{clients: apart}, timed(budget{}, 1, 0), twoOwners},
		{lateSetKept, protocol{clients: apart}, budget{breaks: 1}, stuckForLease},
		{lateQueueKept, protocol{clients: apart}, budget{breaks: 1}, stuckForLease},
		{heldGivenBack, protocol{clients: apart}, budget{twice: 1, again: 1}, twoOwners},
		{doubtGivenBack, protocol{clients: apart, cluster: true}, budget{twice: 1, again: 1}, twoOwners},
		{releasedUnknown, protocol{clients: apart}, budget{}, falselyLost},
		{lateConfirmed, protocol{clients: apart}, timed(budget{}, 2, 0), tokenFell},
		{doubtConfirmed, protocol{clients: apart}, timed(budget{breaks: 1}, 2, 0), tokenFell},
		{doubtReleased, protocol{clients: apart}, timed(budget{breaks: 1}, 1, 0), tokenAgain},
		{ownerOverlooked, protocol{}, budget{deaf: 1}, stuckForLease},
		{unsureDropped, protocol{clients: aPair, linger: true}, budget{breaks: 1}, stuckForLease},
		{pendingForgotten, protocol{clients: apart}, budget{cancels: 1, refusals: 1}, stuckForLease},
		{unheardLeft, protocol{linger: true}, budget{}, stuckForLook},
	} {
		t.Run(string(test.planted), func(t *testing.T) {
			t.Parallel()
			if !deep && slices.Contains(foundLast, test.planted) {
				t.Skip("it takes seconds: make soak")
			}
			p := test.protocol
			p.planted, p.scripts = test.planted, scripts
			if ofTheScripts[test.planted] != nil {
				p.scripts = scripts.with(test.planted)
			}
			s := search{protocol: &p, limit: 1_000_000, goals: goalsAfter(test.faults)}
			p.fewLooks = test.faults.ticks > 0
			if test.flaw < stuck {
				s.only, s.goals = test.flaw, nil
			}
			r := s.find(test.faults)
			if r.flaw != test.flaw {
				t.Errorf("the mistake is not found: %v", r)
			}
			t.Logf("%v", r)
		})
	}
}

// mistake is the description of a planted mistake: a part of the protocol that is left out or changed, to check that
// the search finds it. Some of them were once made in the real protocol.
type mistake string

const (
	noMistake mistake = ""

	// These mistakes are in the Lua scripts. TestScriptLaws plants them too and must find each of them.
	tellBeforeWrite      mistake = "grant publishes before it writes"
	offeredAgain         mistake = "grant offers a token again after a message without receiver"
	grantWithoutReceiver mistake = "a grant without receiver is kept"
	grantUnmarked        mistake = "grant does not mark the lock"
	forgetRefused        mistake = "grant drops the entry when PUBLISH is refused"
	queueUnmarked        mistake = "queue does not mark the lock"
	takeTwice            mistake = "an owner that asks again is queued"
	releaseUnseen        mistake = "a release does not check the mark"
	releaseUnmarked      mistake = "a release does not recognise its own marked lock"
	leaveTheQueue        mistake = "leave removes the entry but does not release the lock"
	leaveTwice           mistake = "two leaves in one command grant the lock twice"
	keepTheSilent        mistake = "a process that let its lease run out is granted the lock again"
	extendShortens       mistake = "a late extension shortens a lease"

	// These mistakes are in the process, the code that runs the scripts.
	trustTheOld      mistake = "in a cluster a message of the former primary is believed"
	noLook           mistake = "a process does not check its slots"
	staleBelieved    mistake = "a lease counts from the receipt of the message"
	lateSetKept      mistake = "the lock of a late SET is not released"
	lateQueueKept    mistake = "a slot queued again after a lost answer does not release a late grant"
	heldGivenBack    mistake = "a repeated grant message releases a held lease"
	doubtGivenBack   mistake = "a repeated grant message releases a lease during its confirmation"
	lateConfirmed    mistake = "a confirmation that arrives after the lease's end is accepted"
	releasedUnknown  mistake = "a repeated grant message releases a lease during its release"
	ownerOverlooked  mistake = "the check of one slot overlooks that another slot of the process is the owner"
	doubtConfirmed   mistake = "a lease that others may have had since its message is confirmed with its old token"
	unsureDropped    mistake = "a slot is dropped that a release without answer may have queued"
	doubtReleased    mistake = "a lease that others may have had since its message is released with its old token"
	unheardLeft      mistake = "a process that does not listen is queued by its release and does not check at once"
	pendingForgotten mistake = "a pending release that Redis refused counts as answered"
)
