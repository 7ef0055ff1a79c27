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

// names are the names of a lock's keys and channel at Redis.
type names struct {
	lock, queue string
	base        string // the prefix of a process's channel name
}

// queueSuffix ends the name of a queue. No lock may have such a name, see goredis.CheckKey.
const queueSuffix = ":handoff"

// lockOf returns the name of a key's lock. In a cluster it has a hash tag that the queue and
// the channel can share.
func lockOf(name string, cluster bool) string {
	if cluster && !tagged(name) && strings.Contains(name, "}") {
		sum := sha1.Sum([]byte(name)) //nolint:gosec // as above
		return "{" + hex.EncodeToString(sum[:]) + "}" + name
	}
	return name
}

// namesOf returns the names of a lock. In a cluster all three names are in one hash slot. Outside a cluster a process
// has one channel for all locks, whose name begins with base.
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

// ids makes globally unique ids. An id is the process's random name, a number, and a secret that only the process can
// compute from that number and the lock. The secret is never published on a channel.
type ids struct {
	process string
	key     [sha256.Size]byte
	last    atomic.Int64
}

// processLength is the length of a process's name, which grant.lua cuts off an id.
const processLength = 26

func newIDs() *ids {
	i := &ids{process: rand.Text()[:processLength]}
	_, _ = rand.Read(i.key[:]) // crypto/rand.Read never returns an error
	return i
}

func (i *ids) next(lock string) string { return i.of(strconv.FormatInt(i.last.Add(1), 36), lock) }

// of makes the id of a number and a lock. Its secret is only a quarter of a hash, so that a client that reads one
// secret cannot compute the secret of a longer text from it (length extension).
func (i *ids) of(number, lock string) string {
	var buffer [256]byte
	text := append(append(append(append(buffer[:0], i.key[:]...), number...), ' '), lock...)
	mac := sha256.Sum256(text)
	id := append(append(append(append(text[:0], i.process...), ':'), number...), ':')
	return string(base64.RawURLEncoding.AppendEncode(id, mac[:8]))
}

// mostTime is the largest time, in µs, that fits a token.
const mostTime = math.MaxInt64 / MostTurns

// parse reads the grant message of grant.lua: the owner's id, the token in µs and the lock. ok is false unless Redis
// made the message from an id that this process made for that lock.
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
