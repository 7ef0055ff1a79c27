package observe

import (
	"bytes"
	"hash/maphash"
	"math"
	"strconv"
)

// mark is a hash of a value such as an owner or a connection, with a random seed. The observer stores no values, only
// their marks and the names of keys.
type mark uint64

// hasher makes marks. Its seed is random, so a mark does not reveal the value, not even with a precomputed table of
// hashes.
type hasher struct{ seed maphash.Seed }

// of returns the mark of a value. It ignores a + at the end of the value, which the lock handoff appends to the owner
// while clients wait.
func (h hasher) of(value []byte) mark {
	value = bytes.TrimSuffix(value, []byte("+"))
	return mark(maphash.Bytes(h.seed, value))
}

// A word is a kind of command on a key. The patterns in shapes.go recognise a library by the sequence of words with
// which its clients acquire and release a lock.
const (
	setNX   = "set-nx" // SET NX
	setXX   = "set-xx"
	setIFEQ = "set-ifeq"
	set     = "set"
	setnx   = "setnx"
	msetnx  = "msetnx"
	get     = "get"
	del     = "del"
	delIFEQ = "del-ifeq"
	expire  = "expire"
	hincr   = "hincr" // HINCRBY of a positive number
	hdecr   = "hdecr" // HINCRBY of a negative number
	hset    = "hset"  // HSET or HSETNX of a field to 1 in a script
	hexists = "hexists"
	exists  = "exists"
	pttl    = "pttl"
	count   = "count" // DECR, INCRBY, ZADD and others of semaphores
	sleep   = "sleep" // BLPOP and other commands that block until a signal
	queue   = "queue" // RPUSHX, with which a client of handoff joins the queue
	watch   = "watch"
	other   = "other"
)

// wordOf maps commands to words. For some commands, steps replaces the word by one that depends on the arguments.
var wordOf = map[string]string{
	"SETNX": setnx, "MSETNX": msetnx, "GET": get, "MGET": get, "GETEX": get, "STRLEN": get, "GETRANGE": get,
	"DEL": del, "UNLINK": del, "GETDEL": del, "EXPIRE": expire, "PEXPIRE": expire, "EXPIREAT": expire,
	"PEXPIREAT": expire, "HEXISTS": hexists, "HGET": hexists, "EXISTS": exists, "TTL": pttl, "PTTL": pttl,
	"DECR": count, "DECRBY": count, "INCR": count, "INCRBY": count, "ZADD": count, "ZREM": count, "ZCARD": count,
	"ZRANK": count, "ZCOUNT": count, "SET": set, "HINCRBY": hincr, "HSET": hset, "HSETNX": hset,
	"DELEX": del, "DELIFEQ": delIFEQ,
	"BLPOP": sleep, "BRPOP": sleep, "BLMOVE": sleep, "BZPOPMIN": sleep, "RPUSHX": queue, "WATCH": watch,
}

// step is a command on one key.
type step struct {
	word  string
	key   *key
	value mark  // the owner; 0 if the command has none
	ttl   int64 // when the command makes the key expire, ms since 1970; 0 if it sets no TTL
	limit limit // condition of an EXPIRE command
}

// limit is the condition of an EXPIRE command: its option GT, NX, LT or XX.
type limit int

const (
	always   limit = iota
	longer         // GT: only a later end; a key without a TTL never ends, so GT has no effect on it
	shorter        // LT: only an earlier end, which is any end for a key without a TTL
	fresh          // NX: only a key without a TTL
	existing       // XX: only a key with a TTL
)

// without reports whether an EXPIRE has no effect on a key whose TTL ends at until, in ms since 1970. until is 0 for a
// key without a TTL. For GT with an earlier end, without returns false: the end stays the same, but a holder that sends
// the command still renews its lease.
func (s step) without(until int64) bool {
	switch s.limit {
	case longer, existing:
		return until == 0
	case shorter:
		return until != 0 && s.ttl >= until
	case fresh:
		return until != 0
	}
	return false
}

func scripted(name string) bool {
	switch name {
	case "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO":
		return true
	}
	return false
}

// upper copies at most the first 24 bytes of a command's name into buffer, in upper case, and returns the copy.
func upper(buffer, name []byte) []byte {
	buffer = buffer[:0]
	for _, c := range name[:min(len(name), 24)] {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		buffer = append(buffer, c)
	}
	return buffer
}

// steps appends the steps of a command. A command such as SET NX makes the observer follow the key that it names
// (opens). In a script, every command does so, because only the whole script shows whether the key is a lock.
func (o *observer) steps(l *line, name []byte, to []step) []step {
	word, known := wordOf[string(name)]
	if string(name) == "FLUSHALL" || string(name) == "FLUSHDB" {
		o.keys.emptied(l.database, string(name) == "FLUSHALL", l.at)
	}
	if len(l.args) < 2 {
		return to
	}
	args := l.args[1:]
	if !known {
		if k := o.keyOf(l, args[0], l.inner); k != nil {
			to = append(to, step{word: other, key: k})
		}
		return to
	}
	s := step{word: word}
	opens := l.inner
	switch {
	case l.cut && word != get && word != del && word != exists: // arguments that choose the word may be missing
		s.word = other
	case word == set:
		s = o.set(l, args)
		opens = opens || s.word == setNX || o.keys.named(args[0])
	case word == setnx && len(args) > 1:
		s.value, opens = o.marks.of(args[1]), true
	case word == msetnx:
		for at := 0; at+1 < len(args); at += 2 {
			s.value = o.marks.of(args[at+1])
			s.key = o.keys.follow(l.database, args[at], l.at)
			to = append(to, s)
		}
		return to
	case word == hincr && len(args) > 2:
		s.value = o.marks.of(args[1])
		if bytes.HasPrefix(args[2], []byte("-")) {
			s.word = hdecr
		}
	case word == hset:
		if s.word = other; l.inner && len(args) == 3 && string(args[2]) == "1" {
			s.word, s.value = hset, o.marks.of(args[1])
		}
	case word == queue && len(args) > 1: // "owner ttl"
		owner, _, _ := bytes.Cut(args[1], []byte(" "))
		s.value = o.marks.of(owner)
	case word == hexists && len(args) > 1:
		s.value = o.marks.of(args[1])
	case word == expire && len(args) > 1:
		s.ttl, s.limit = until(string(name), args[1], l.at), limited(args[2:])
	case string(name) == "DELEX" && len(args) > 2 && bytes.EqualFold(args[1], []byte("IFEQ")):
		s.word, s.value = delIFEQ, o.marks.of(args[2])
	case word == delIFEQ && len(args) > 1:
		s.value = o.marks.of(args[1])
	case string(name) == "MGET" || word == del || word == exists || word == watch: // several keys
		for _, arg := range args {
			if s.key = o.keyOf(l, arg, opens); s.key != nil {
				to = append(to, s)
			}
		}
		return to
	}
	if s.key = o.keyOf(l, args[0], opens); s.key != nil {
		to = append(to, s)
	}
	return to
}

// keyOf returns the followed key with this name. If the key is not followed yet, keyOf starts to follow it (opens is
// true) or returns nil (opens is false).
func (o *observer) keyOf(l *line, name []byte, opens bool) *key {
	if opens {
		return o.keys.follow(l.database, name, l.at)
	}
	return o.keys.find(l.database, name)
}

// set returns the step of a SET command, whose arguments are the key, the value and the options.
func (o *observer) set(l *line, args [][]byte) step {
	s := step{word: set}
	if len(args) < 2 {
		s.word = other
		return s
	}
	s.value = o.marks.of(args[1])
	for at := 2; at < len(args); at++ {
		option := string(upper(make([]byte, 0, 8), args[at]))
		switch option {
		case "NX":
			s.word = setNX
		case "XX":
			s.word = setXX
		case "IFEQ":
			if at++; at < len(args) {
				s.word = setIFEQ
			}
		case "EX", "PX", "EXAT", "PXAT":
			if at++; at < len(args) {
				s.ttl = until(option, args[at], l.at)
			}
		}
	}
	return s
}

// limited returns the condition that the options of an EXPIRE command set, or always if they set none.
func limited(args [][]byte) limit {
	for _, arg := range args {
		switch string(upper(make([]byte, 0, 8), arg)) {
		case "GT":
			return longer
		case "NX":
			return fresh
		case "LT":
			return shorter
		case "XX":
			return existing
		}
	}
	return always
}

// until returns the time at which a TTL ends, in ms since 1970, or 0 if ttl is not a valid number. Like the server, it
// adds a relative TTL to the clock in whole ms.
func until(unit string, ttl []byte, at int64) int64 {
	n, err := strconv.ParseInt(string(ttl), 10, 64)
	if err != nil || n > math.MaxInt64/4_000_000 || n < -math.MaxInt64/4_000_000 {
		return 0
	}
	now := at / 1000
	switch unit {
	case "EX", "EXPIRE":
		n = now + n*1000
	case "PX", "PEXPIRE":
		n += now
	case "EXAT", "EXPIREAT":
		n *= 1000
	}
	return max(n, 1)
}
