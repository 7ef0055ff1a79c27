package observe

import (
	"bytes"
	"container/list"
	"regexp"
	"strings"
)

// Limits of the memory for keys, because a stream may be hostile.
const (
	mostKeys    = 20_000  // followed at a time
	mostWaiters = 200_000 // of all keys
	mostScripts = 4096
	longestKey  = 512 // bytes of a key's name

	mostDatabases = 64 // of which the last FLUSHDB is known
)

// id is the name of a key in its database.
type id struct {
	database int
	name     string
}

// key is what is followed: a lock, what may be one, or what belongs to one: its queue, signal or channel.
type key struct {
	id
	place  *list.Element // in the order of use
	partOf *key          // the lock that it belongs to
	lock   lock
	empty  int64 // the last deletion of all keys that it knows of, µs
}

// keys are those that are followed. If there are too many, the one that was not used for longest is forgotten.
type keys struct {
	all    map[id]*key
	used   *list.List // of *key, the last used first
	prefix string     // of the locks, if the user says it
	forget func(*key)
	fresh  bool // the server was empty when the capture began, so what is not known is not held

	journal *journal // nil if no trace is wanted

	// When all keys of all databases, and those of one, were last deleted, µs.
	allEmpty int64
	empty    map[int]int64
}

func newKeys(prefix string, forget func(*key)) *keys {
	return &keys{all: map[id]*key{}, used: list.New(), prefix: prefix, forget: forget, empty: map[int]int64{}}
}

// find returns a key that is followed; nil if it is not.
func (ks *keys) find(database int, name []byte) *key {
	k := ks.all[id{database, string(name)}]
	if k != nil {
		ks.used.MoveToFront(k.place)
		ks.update(k)
	}
	return k
}

// emptied notes that all keys are deleted. update applies it to a key at its next use.
func (ks *keys) emptied(database int, all bool, at int64) {
	if _, known := ks.empty[database]; all || !known && len(ks.empty) >= mostDatabases {
		ks.allEmpty = at
		return
	}
	ks.empty[database] = at
}

// update ends the lease of a key if all keys have been deleted since it was used.
func (ks *keys) update(k *key) {
	if at := max(ks.allEmpty, ks.empty[k.database]); at > k.empty {
		k.lock.emptied(at)
		k.empty = at
	}
}

// follow returns a key, which is followed from now on; nil if it cannot be: its name is too long.
func (ks *keys) follow(database int, name []byte, at int64) *key {
	if k := ks.find(database, name); k != nil || len(name) > longestKey {
		return k
	}
	if len(ks.all) >= mostKeys {
		ks.drop()
	}
	k := &key{id: id{database, string(name)}, empty: max(ks.allEmpty, ks.empty[database])}
	k.lock.seen, k.lock.known = at, ks.fresh || k.empty > 0
	if ks.journal != nil {
		k.lock.journal, k.lock.of = ks.journal, &named{id: k.id}
	}
	k.place = ks.used.PushFront(k)
	ks.all[k.id] = k
	return k
}

// drop forgets a key that was not used for long, if possible one without a lease and waiters.
func (ks *keys) drop() {
	const looked = 64
	place := ks.used.Back()
	for i := 0; i < looked && place.Prev() != nil; i++ {
		if l := &place.Value.(*key).lock; !l.held && len(l.waiters) == 0 {
			break
		}
		place = place.Prev()
	}
	k := place.Value.(*key)
	ks.used.Remove(place)
	delete(ks.all, k.id)
	ks.forget(k)
}

// A key's name may say that it is a lock, or that a variable in it had no value.
var (
	ofLock = regexp.MustCompile(`(?i:(?:^|[^a-z])(?:lock|locks|mutex|lease|shedlock)(?:$|[^a-z]))|` +
		`[a-z](?:Lock|Mutex|Lease)(?:$|[^a-z])`)
	noName = regexp.MustCompile(`(?:^|[^A-Za-z0-9_])(?:undefined|null|None)(?:$|[^A-Za-z0-9_])`)
)

// named reports whether a key's name is that of a lock.
func (ks *keys) named(name []byte) bool {
	if ks.prefix != "" {
		return bytes.HasPrefix(name, []byte(ks.prefix))
	}
	return len(name) <= longestKey && ofLock.Match(name)
}

// isLock reports whether a key is a lock. With a prefix that decides, and otherwise a name such as lock:order:7. A key
// of another name is a lock if its owner is compared when it is deleted or renewed, or if it is tried again by the same
// owner; then it must have been deleted at some time, or tried again more than once, and clients do not read it: caches
// are filled by SET NX as well.
func (ks *keys) isLock(k *key) bool {
	f := &k.lock.figures
	if k.partOf != nil || f.Tries == 0 && f.Acquisitions == 0 {
		return false
	}
	if ks.prefix != "" {
		return strings.HasPrefix(k.name, ks.prefix)
	}
	switch {
	case f.compared > 0 || f.hashed > 0:
		return true
	case f.counted == 0 && ofLock.MatchString(k.name):
		return true
	case f.counted > 0 || f.read > (f.compared+f.plain+f.apart)/4:
		return false
	}
	return f.apart > 0 || f.again > 0 && f.plain > 0 || f.again > 1 && f.SharedValue == 0
}

// script is what the executions of a script have shown.
type script struct {
	does  act // tries, releases or renews; nothing if that is not known yet
	owner int // place of the owner in its arguments; −1 if it is not known
}
