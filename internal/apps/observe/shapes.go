package observe

import (
	"regexp"
	"strings"
)

// act is what commands on a key mean for its lock.
type act int

const (
	nothing  act = iota
	tries        // a try: it takes the lock if that is free
	grants       // a try that took the lock
	refused      // a try that did not
	releases     // the lock is deleted after its owner was compared
	deletes      // the lock is deleted without a look at its owner
	renews       // the lease gets another end
	looks        // only the owner is read: other executions of the script show the purpose
	reads        // a client reads the key
	counts       // a semaphore's counter, which is not understood
	steals       // a SET without NX outside of a script
	watches      // what the client deletes now, it deletes only if nothing has changed
)

// shape is how locks of a kind speak to Redis: the words of the commands on the key of the lock, as MONITOR shows them.
// Replies are not shown, but a script goes on only if its first commands had the right ones.
type shape struct {
	name      string
	libraries string // that have this shape; "" if the shape alone does not say it
	scripted  bool   // the commands are those of one script
	like      string // pattern of the words; each has a blank behind it
	is        act
}

// Shapes and a library that the code knows by name.
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

// shapes are tried from the first to the last.
var shapes = [...]shape{
	// Clients that send single commands. MULTI and EXEC do not change what MONITOR shows of the commands between.
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

	// Scripts that take a lock.
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

	// Scripts that give it back, or keep it. One that can be entered again is only left once by some of them.
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

// signalled are the libraries whose waiters sleep in BLPOP, by how they take the lock.
var signalled = map[string]string{setNXBare: "python-redis-lock", setNXScript: "blpop"}

// compiled are the patterns of the shapes.
var compiled = func() (all []*regexp.Regexp) {
	for _, s := range shapes {
		all = append(all, regexp.MustCompile("^(?:"+s.like+")$"))
	}
	return all
}()

// Limits of the memory for scripts, because a stream may be hostile.
const (
	mostSequences = 4096
	mostWords     = 64
)

// matcher finds the shapes of words, and remembers them.
type matcher struct {
	known  map[string]int
	single map[string]int
}

func newMatcher() matcher { return matcher{known: map[string]int{}, single: map[string]int{}} }

// shape returns the index of the shape of these words; −1 if they have none.
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
