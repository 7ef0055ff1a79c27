package observe

import (
	"regexp"
	"strings"
)

// act is an operation on a lock.
type act int

const (
	nothing  act = iota
	tries        // a try that takes the lock if the lock is free
	grants       // a try that took the lock
	refused      // a try that did not take the lock
	releases     // a delete after a compare of the owner in the same step
	deletes      // a delete without a compare in the same step
	renews       // a change of the end of the lease
	looks        // a script that only read the lock; other executions of the script show its purpose
	reads        // a client reads the key outside a script
	counts       // a change of a counter, as of a semaphore, which observe does not support
	steals       // a SET without NX outside a script
	watches      // a WATCH, after which a transaction deletes only if the key has not changed
)

// shape is a way in which libraries operate on a lock. It is a pattern for the words of all commands on the lock's key,
// as MONITOR shows them. MONITOR does not show replies, but the commands of a script show which branch the script took.
type shape struct {
	name      string
	libraries string // libraries that send commands of this shape; "" if the shape alone does not show the library
	scripted  bool   // whether the commands are those of one script or of a client
	like      string // regular expression for the words, each followed by a blank
	is        act
}

// Names of shapes, and of one library, that the code refers to.
const (
	handoff     = "handoff"
	setNXBare   = "SET NX"
	setNXScript = "SET NX in a script"
	hashLock    = "HINCRBY and PEXPIRE in a script"
	existsSet   = "EXISTS and SET in a script"
	getSet      = "GET and SET in a script"
	setAlone    = "SET in a script"
	expireAlone = "EXPIRE in a script"
)

// shapes lists the known ways to operate on a lock. If several shapes match, the first one counts.
var shapes = [...]shape{
	// Commands outside scripts. MONITOR shows the commands of a transaction like any other commands.
	{setNXBare, "redsync, redis-py, redis-semaphore, python-redis-lock, aioredlock", false, `set-nx `, tries},
	{"SETNX", "locks made by hand: SETNX, with EXPIRE as a second command or without", false, `setnx `, tries},
	{"MSETNX", "", false, `(msetnx )+`, tries},
	{"DEL", "ShedLock and locks made by hand", false, `del `, deletes},
	{"DELEX or DELIFEQ", "clients of Redis 8.4 or Valkey 9", false, `del-ifeq `, releases},
	{"EXPIRE", "", false, `expire `, renews},
	{"SET XX", "ShedLock (lockAtLeastFor)", false, `set-xx `, renews},
	{"SET IFEQ", "", false, `set-ifeq `, renews},
	{"SET", "", false, `set `, steals},
	{"RPUSHX", handoff, false, `queue `, refused},
	{"GET", "", false, `(get |exists |pttl )+`, reads},
	{"WATCH", "", false, `watch `, watches},

	// Scripts that acquire a lock.
	{setNXScript, "", true, `set-nx `, tries},
	{setNXScript, "", true, `(get |exists )*set-nx (pttl |get ).*`, refused},
	{setNXScript, "", true, `(get |exists )*set-nx expire `, grants},
	{"SETNX in a script", "locks made by hand", true, `(get |exists )*setnx expire .*`, grants},
	{"SETNX in a script", "locks made by hand", true, `(get |exists )*setnx (pttl |get ).*`, refused},
	{"SETNX in a script", "locks made by hand", true, `setnx `, tries},
	{"MSETNX and PEXPIRE in a script", "redislock", true, `msetnx expire `, grants},
	{"MSETNX and PEXPIRE in a script", "redislock", true, `msetnx (get |pttl )*`, refused},
	{
		hashLock, "Redisson and locks that can be entered again", true,
		`(exists |hexists |pttl )*hincr (pttl |exists )*(expire )?`, grants,
	},
	{
		"HSET and PEXPIRE in a script", "Redisson's fair lock", true,
		`(exists |hexists |pttl |get )*hset (pttl |exists )*(expire )?`, grants,
	},
	{
		hashLock, "Redisson and locks that can be entered again", true,
		`(exists )*hexists (exists )*pttl `, refused,
	},

	// Scripts that release or renew a lock. A release of a re-entrant lock may decrement the hold count and keep the lock.
	{"HINCRBY −1 and DEL in a script", "Redisson", true, `(get |exists |hexists |pttl )*hdecr (.*)del .*`, releases},
	{"HINCRBY −1 in a script", "Redisson", true, `(get |exists |hexists )*hdecr (pttl |exists )*(expire )?`, nothing},
	{"HEXISTS and PEXPIRE in a script", "Redisson", true, `(exists )*hexists (pttl )?expire `, renews},
	{"compare and delete in a script", "", true, `(exists |pttl )*(get )+(pttl |exists )*del .*`, releases},
	{"DELEX or DELIFEQ", "", true, `(get )*del-ifeq .*`, releases},
	{
		"compare and renew in a script", "", true,
		`(exists )*(get )+(pttl |exists |get )*(expire |set-xx )(pttl |get )*`, renews,
	},
	{"a semaphore's counter", "", true, `.*count .*`, counts},
	{existsSet, "redlock (Node.js)", true, `(exists )+set (pttl |expire )*`, grants},
	{
		"GET and SET in a script", "handoff", true, `(exists |get |pttl |other )+set (pttl |get |expire |other )*`,
		grants,
	},
	{setAlone, "", true, `set `, grants},
	{"a look", "", true, `(get |exists |hexists |pttl |other )+`, looks},
	{"DEL in a script", "", true, `.*del .*`, deletes},
	{expireAlone, "", true, `expire `, renews},
}

// signalled maps the shape of a try to the library that sends such tries and whose waiters sleep in BLPOP.
var signalled = map[string]string{setNXBare: "python-redis-lock", setNXScript: "blpop"}

// compiled contains the compiled patterns of shapes, at the same indices.
var compiled = func() (all []*regexp.Regexp) {
	for _, s := range shapes {
		all = append(all, regexp.MustCompile("^(?:"+s.like+")$"))
	}
	return all
}()

// Limits for the cache of a matcher, which protect the memory against a hostile stream.
const (
	mostSequences = 4096
	mostWords     = 64
)

// matcher finds the shape of a sequence of words. It caches the results for scripts in known, and for single commands
// in single.
type matcher struct {
	known  map[string]int
	single map[string]int
}

func newMatcher() matcher { return matcher{known: map[string]int{}, single: map[string]int{}} }

// shape returns the index of the first shape that matches the words; −1 if there is none.
func (m *matcher) shape(words []string, inScript bool) int {
	known := m.single
	if inScript {
		known = m.known
	}
	if len(words) == 1 {
		if at, ok := known[words[0]]; ok {
			return at
		}
	}
	sequence := strings.Join(words[:min(len(words), mostWords)], " ")
	at, ok := known[sequence]
	if ok {
		return at
	}
	at = -1
	for i, s := range shapes {
		if s.scripted == inScript && compiled[i].MatchString(sequence+" ") {
			at = i
			break
		}
	}
	if len(known) < mostSequences {
		known[sequence] = at
	}
	return at
}
