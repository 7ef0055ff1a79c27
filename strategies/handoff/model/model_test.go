//go:build !race

// Package model is the argument of ../DESIGN.md in a form that a computer can try. It has
// only tests.
//
// A world is one lock at a server, two processes with three clients, and all that is on its
// way between them. What SET, RPUSHX and the scripts of this repository do to the lock is asked of a real Redis
// (scripts_test.go), each question once; process_test.go and lease_test.go implement what a process does, with local
// passing, places, debts, looks and confirmations; step_test.go lists what may happen next.
// search_test.go visits every world that can be reached, the nearest first. It checks that at
// most one client holds the lock, that no token falls or comes twice, that no valid lease is
// called lost, and that everybody can still be served. After a fault that must not need a wait
// for a lease that nobody has; without a fault it must not need a look. The test prints the
// shortest way to a violation. It must also find planted mistakes, which were made once or
// could be made.
//
// laws_test.go has what must hold of each script alone, with every command in every small state.
//
// With LOCKBENCH_MODEL=1 (make soak) the tests search further, for minutes: they then search most of the
// faults with three clients to the end, and look for the mistakes that are found last too.
//
// # What it does not have
//
//   - The Lua is played itself, the Go of the processes is not. Whoever changes the Go
//     must change the model by hand, and the Go may be wrong where the model is right.
//   - A TTL is one tick, so a lease is either new or over. Worlds in which time passes are
//     searched for two processes with one client each, two ticks and few looks, and every day
//     only in part. The search checks only exclusion and tokens there, not whether everybody is
//     served. Elsewhere no time passes, except for the leases of the dead.
//   - "Can be served" means that some continuation serves everybody, not that each does. The
//     search does not check order and overtaking.
//   - There is one fault at a time (two where a test says so), of one process. A broken
//     connection affects one command, which is lost, late or without its answer; in truth it
//     affects all commands on it.
//   - After a failover the old primary is an exact copy that refuses writes: there is no lag, and
//     no loss of data. Sentinel, cluster slots, MOVED and CLUSTERDOWN are missing.
//   - Close, ends of patience (2 s), TryAcquire, a queue's TTL of 10 min, and clocks that go back
//     are missing. SIGSTOP only makes a process slow: no lease loses its place by it.
//   - Where no answer can be lost, running a command and reading an answer that gives nothing are
//     one step. Worlds are known by hashes of 64 bits. The search does not follow a world with
//     more on its way than there is room for (4 debts, 6 entries, 3 messages, 2 late commands).
package model

import (
	"os"
	"slices"
	"testing"
)

// faultsOf are the faults that are searched one at a time, between any two steps.
var faultsOf = []struct {
	name   string
	faults budget
}{
	{"calm", budget{}},
	{"a command or its answer is lost or late", budget{breaks: 1}},
	{"a process is told by a connection that breaks", budget{deaf: 1}},
	{"death", budget{deaths: 1}},
	{"cancel", budget{cancels: 1}},
	{"refused writes", budget{refusals: 1}},
	{"refused PUBLISH", budget{mutes: 1}},
	{"failover", budget{failover: 1}},
	{"told twice", budget{twice: 1}},
	{"clock step", budget{steps: 1}},
	{"lost queue", budget{losses: 1}},
	{"extend", budget{extends: 1}},
}

// goalsAfter are what must be reached after faults. Where time passes, nothing: leases run out by themselves.
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

// deep has the tests look further than there is time for every day.
var deep = os.Getenv("LOCKBENCH_MODEL") != ""

// The lock is safe, and everybody can be served, after any of the faults, and where time passes: leases then run out
// while they are relied on, told, released and extended.
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

// foundLast are the mistakes of which a search has to see 50,000 worlds or more before it finds them.
var foundLast = []mistake{extendShortens, doubtConfirmed, doubtReleased, ownerOverlooked}

// A search that finds nothing must have been able to.
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
		{grantToNobody, protocol{clients: apart}, budget{deaths: 1}, untold},
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
				t.Errorf("it is not found: %v", r)
			}
			t.Logf("%v", r)
		})
	}
}

// mistake is what is left out of the protocol, or was once, to see that it is found.
type mistake string

const (
	noMistake mistake = ""

	// Of the scripts: laws_test.go plants them, and finds each of these too.
	tellBeforeWrite mistake = "grant tells before it writes"
	offeredAgain    mistake = "grant offers a token again that nobody heard of"
	grantToNobody   mistake = "a grant that nobody heard stands"
	grantUnmarked   mistake = "grant does not mark the lock"
	forgetRefused   mistake = "grant drops the entry when PUBLISH is refused"
	queueUnmarked   mistake = "who queues does not mark the lock"
	takeTwice       mistake = "an owner who asks again queues"
	releaseUnseen   mistake = "a release does not look for the mark"
	releaseUnmarked mistake = "a release does not know its own lock by the mark"
	leaveTheQueue   mistake = "who leaves leaves the queue, but not the lock"
	leaveTwice      mistake = "who leaves twice in one command gives the lock to two"
	keepTheSilent   mistake = "a process that let its lease run out is granted the lock again"
	extendShortens  mistake = "a late extension shortens a lease"

	// Of who uses them.
	trustTheOld      mistake = "in a cluster what is heard at what was the primary is believed"
	noLook           mistake = "nobody looks what has become of his place"
	staleBelieved    mistake = "a lease counts from the receipt of the message"
	lateSetKept      mistake = "a SET that comes late is not given back"
	lateQueueKept    mistake = "what queues again after a lost answer does not give back what comes late"
	heldGivenBack    mistake = "a grant that is told again is given back though it is held"
	doubtGivenBack   mistake = "a grant that is told again is given back while Redis is asked about it"
	lateConfirmed    mistake = "that a lease was over before Redis's confirmation came is not noticed"
	releasedUnknown  mistake = "a grant that is told again is given back while it is released"
	ownerOverlooked  mistake = "who looks after one place does not see that another of the process is the owner"
	doubtConfirmed   mistake = "a lease that others may have had since it was told is confirmed with its token"
	unsureDropped    mistake = "a place that a release whose answer was lost may have queued is dropped"
	doubtReleased    mistake = "a lease that others may have had since it was told is released with its token"
	unheardLeft      mistake = "a process that does not listen is queued by its release, and does not look at once"
	pendingForgotten mistake = "a debt that Redis refused counts as paid"
)
