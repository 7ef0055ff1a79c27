package locktest

import "github.com/lockbench/lockbench/strategies"

// What a strategy promises, in the words of a failure.
const (
	granting   = "a free lock is granted, and given back once"
	exclusive  = "never more holders than permits"
	permitted  = "as many may hold as there are permits"
	anyKey     = "any string is a key of its own"
	closing    = "Close refuses new callers and harms no holder"
	trying     = "a try-lock does not wait"
	ending     = "a wait ends with its context"
	yielding   = "a wait that ends takes neither lock nor wake-up with it"
	tidy       = "nothing is left behind"
	inOrder    = "first come, first served"
	bounded    = "nobody is overtaken again and again"
	growing    = "fencing tokens grow"
	again      = "the owner may acquire again, and releases as often"
	ownersOnly = "only the owner releases"
	recovering = "a dead holder's lock frees by itself"
	late       = "a late release is told so and harms nobody"
	extending  = "an extended lease lasts"
	valid      = "a lease is valid no longer than Redis keeps it"
	watching   = "a living holder keeps its lease, and no other does"
	waking     = "no wake-up is lost"
	scripting  = "a flushed script cache is filled again"
	ungranted  = "a lock that was granted to nobody is freed"
	returning  = "a restarted server is found again"
	majority   = "a majority of the nodes is enough, and needed"
)

// test is one of the suite's: of one promise, although it may see others broken.
type test struct {
	name    string
	promise string
	applies func(strategies.Info) bool
	run     func(*stage)
}

func excludes(i strategies.Info) bool { return i.Claims.Exclusion && i.Capacity > 0 }
func shares(i strategies.Info) bool   { return excludes(i) && i.Capacity > 1 }
func recovers(i strategies.Info) bool { return excludes(i) && i.Claims.Recovery }
func onRedis(i strategies.Info) bool  { return excludes(i) && i.Nodes > 0 }
func queues(i strategies.Info) bool   { return excludes(i) && i.Claims.FIFO }
func bounds(i strategies.Info) bool {
	return excludes(i) && i.Capacity == 1 && (i.Claims.Bounded || i.Claims.FIFO)
}
func fences(i strategies.Info) bool   { return excludes(i) && i.Claims.Fencing }
func reenters(i strategies.Info) bool { return excludes(i) && i.Claims.Reentrant }
func onNodes(i strategies.Info) bool  { return excludes(i) && i.Nodes > 1 }
func watches(i strategies.Info) bool  { return excludes(i) && i.Claims.Watchdog }

func tests() []test {
	return []test{
		{"acquire and release", granting, func(strategies.Info) bool { return true }, acquireAndRelease},
		{"closed", closing, excludes, closed},
		{"strange keys", anyKey, excludes, strangeKeys},
		{"exclusion", exclusive, excludes, exclusion},
		{"permits", permitted, shares, permits},
		{"stranger", ownersOnly, excludes, stranger},
		{"try-lock", trying, excludes, tryLock},
		{"cancelled wait", ending, excludes, cancelledWait},
		{"cancelled at any moment", yielding, excludes, cancelledAnytime},
		{"given-up waits", tidy, excludes, givenUpWaits},
		{"fifo", inOrder, queues, fifo},
		{"overtaking", bounded, bounds, overtaking},
		{"fencing", growing, fences, fencing},
		{"re-entrance", again, reenters, reentrance},
		{"dead holder", recovering, recovers, deadHolder},
		{"late release", late, recovers, lateRelease},
		{"extend", extending, recovers, extend},
		{"validity", valid, recovers, validity},
		{"watchdog", watching, watches, watchdog},
		{"release before the wait", waking, onRedis, releaseBeforeTheWait},
		{"release during a reconnect", waking, onRedis, releaseDuringReconnect},
		{"killed connections", waking, onRedis, killedConnections},
		{"flushed scripts", scripting, onRedis, flushedScripts},
		{"lost reply", ungranted, onRedis, lostReply},
		{"restarted server", returning, onRedis, restartedServer},
		{"dead nodes", majority, onNodes, deadNodes},
	}
}
