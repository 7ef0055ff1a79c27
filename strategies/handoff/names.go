package handoff

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // for hash tags, and for proofs, because Redis's scripts have no better hash
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
)

// names are the names of a lock at Redis: its key, its queue, and the prefix of its channels.
type names struct {
	lock, queue string
	base        string // the prefix of a process's channel name
}

// queueSuffix is the suffix of every queue's name. goredis.CheckKey refuses a lock whose key has the same suffix.
const queueSuffix = ":handoff"

// lockOf returns the key under which Redis stores the lock called name. In a cluster, lockOf puts a hash tag in front
// of a name that contains "}" but no hash tag, so that the lock, its queue and its channels can share a hash slot.
func lockOf(name string, cluster bool) string {
	if cluster && !tagged(name) && strings.Contains(name, "}") {
		sum := sha1.Sum([]byte(name)) //nolint:gosec // as above
		return "{" + hex.EncodeToString(sum[:]) + "}" + name
	}
	return name
}

// namesOf returns the key, the queue and the channel prefix of a lock. In a cluster all three are in one hash slot.
// Outside a cluster a process has one channel for all locks; the name of this channel begins with base.
func namesOf(lock, base string, cluster bool) names {
	queue := lock + queueSuffix
	if cluster && !tagged(lock) {
		queue = "{" + lock + "}" + queueSuffix
	}
	if cluster {
		return names{lock, queue, queue + ":"}
	}
	return names{lock, queue, base}
}

// tagged reports whether a name has a hash tag: a non-empty part between the first { and the next }. Redis Cluster
// hashes only that part.
func tagged(name string) bool {
	_, rest, open := strings.Cut(name, "{")
	tag, _, shut := strings.Cut(rest, "}")
	return open && shut && tag != ""
}

// ids makes globally unique ids. An id consists of the process's random name, a number, and a secret that only the
// process can compute from that number and the lock. The secret is never published on a channel, so a client that only
// listens cannot forge a grant message.
type ids struct {
	process string
	key     [sha256.Size]byte
	last    atomic.Int64
}

// processLength is the length of a process's name. grant.lua takes this many characters of an id as the name of its
// process.
const processLength = 26

func newIDs() *ids {
	i := &ids{process: rand.Text()[:processLength]}
	_, _ = rand.Read(i.key[:]) // crypto/rand.Read never returns an error
	return i
}

func (i *ids) next(lock string) string { return i.of(strconv.FormatInt(i.last.Add(1), 36), lock) }

// of returns the id for a number and a lock. The secret in an id is only a quarter of a hash, so that a client that
// reads one secret cannot compute the secret of a longer text from it (length extension).
func (i *ids) of(number, lock string) string {
	var buffer [256]byte
	text := append(append(append(append(buffer[:0], i.key[:]...), number...), ' '), lock...)
	mac := sha256.Sum256(text)
	id := append(append(append(append(text[:0], i.process...), ':'), number...), ':')
	return string(base64.RawURLEncoding.AppendEncode(id, mac[:8]))
}

// mostTime is the largest time, in µs, that a grant message may contain. Multiplied by MostTurns, it must fit into the
// int64 of a fencing token.
const mostTime = math.MaxInt64 / MostTurns

// parse reads a grant message of grant.lua: the owner's id, the token in µs and the lock. ok is true only if the proof
// in the message matches an id of this process for that lock.
func (i *ids) parse(grantMsg string) (id string, token int64, lock string, ok bool) {
	name, rest, _ := strings.Cut(grantMsg, " ")
	clock, rest, _ := strings.Cut(rest, " ")
	proof, lock, _ := strings.Cut(rest, " ")
	number, ours := strings.CutPrefix(name, i.process+":")
	token, err := strconv.ParseInt(clock, 10, 64)
	if !ours || err != nil || token <= 0 || token > mostTime {
		return "", 0, "", false
	}
	id = i.of(number, lock)
	sum := sha1.Sum([]byte(id + " " + clock + " " + lock)) //nolint:gosec // the only hash in Redis's scripts
	ok = hmac.Equal([]byte(hex.EncodeToString(sum[:8])), []byte(proof))
	return id, token, lock, ok
}
