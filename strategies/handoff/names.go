package handoff

import (
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // it keeps nothing secret
	"encoding/hex"
	"strconv"
	"strings"
	"sync/atomic"
)

// names are the names of a lock at Redis.
type names struct {
	lock, queue string
	base        string // the beginning of a process's channel name
}

// lockOf returns the name of a key's lock. In a cluster it has a hash tag that the queue and
// the channel can share.
func lockOf(name string, cluster bool) string {
	if _, tagged := tagOf(name); cluster && !tagged && strings.Contains(name, "}") {
		sum := sha1.Sum([]byte(name)) //nolint:gosec // as above
		return "{" + hex.EncodeToString(sum[:]) + "}" + name
	}
	return name
}

// namesOf returns the names of a lock. In a cluster all three are in one slot; elsewhere a
// process has one channel for all locks, which begins with base.
func namesOf(lock, base string, cluster bool) names {
	queue := lock + ":handoff"
	if _, tagged := tagOf(lock); cluster && !tagged {
		queue = "{" + lock + "}:handoff"
	}
	if cluster {
		return names{lock, queue, queue + ":"}
	}
	return names{lock, queue, base}
}

// tagOf returns the part of a name that Redis Cluster hashes: what stands between the first {
// and the next }, or the whole name if that is nothing.
func tagOf(name string) (tag string, tagged bool) {
	if _, rest, ok := strings.Cut(name, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return tag, true
		}
	}
	return name, false
}

// ids are unique in the world: a process's random name and a number.
type ids struct {
	process string
	last    atomic.Int64
}

// processLength is the length of a process's name, which grant.lua cuts off an id.
const processLength = 26

func newIDs() *ids { return &ids{process: rand.Text()[:processLength]} }

func (i *ids) next() string { return i.process + ":" + strconv.FormatInt(i.last.Add(1), 36) }
