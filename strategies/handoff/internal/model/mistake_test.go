//go:build !race

package model

// mistake is what is left out of the protocol, or was once, to see that it is found.
type mistake string

const (
	noMistake mistake = ""

	// Of the scripts: replay_test.go finds each of these too.
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
	replicatedTold  mistake = "what a primary tells, those hear who listen at what was the primary"
	trustTheOld     mistake = "in a cluster what is heard at what was the primary is believed"
	ignoreUnknown   mistake = "a grant for which nobody waits any more is ignored"
	noLook          mistake = "nobody looks what has become of his place"
	staleBelieved   mistake = "a lease counts from the receipt of the message"
	lateSetKept     mistake = "a SET that comes late is not given back"
	lateQueueKept   mistake = "what queues again after a lost answer does not give back what comes late"
	heldGivenBack   mistake = "a grant that is told again is given back though it is held"
	doubtGivenBack  mistake = "a grant that is told again is given back while Redis is asked about it"
	lateConfirmed   mistake = "that a lease was over before Redis's confirmation came is not noticed"
	releasedUnknown mistake = "a grant that is told again is given back while it is released"
	ownerOverlooked mistake = "who looks after one place does not see that another of the process is the owner"
	doubtConfirmed  mistake = "a lease that others may have had since it was told is confirmed with its token"
	unsureDropped   mistake = "a place that a release whose answer was lost may have queued is dropped"
	doubtReleased   mistake = "a lease that others may have had since it was told is released with its token"
	debtForgotten   mistake = "a debt that Redis refused counts as paid"
)

// ofTheScripts are those that the replay finds, too.
var ofTheScripts = []mistake{
	tellBeforeWrite, offeredAgain, grantToNobody, grantUnmarked, forgetRefused, queueUnmarked,
	takeTwice, releaseUnseen, releaseUnmarked, leaveTheQueue, leaveTwice, keepTheSilent, extendShortens,
}
