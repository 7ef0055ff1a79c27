package observe

import (
	"bytes"
	"container/list"
	"regexp"
	"strings"
)

// Limits for the keys, which protect the memory against a hostile stream.
const (
	mostKeys    = 20_000  // followed at the same time
	mostWaiters = 200_000 // of all keys
	mostScripts = 4096
	longestKey  = 512 // bytes of a key's name

	mostDatabases = 64 // databases whose last FLUSHDB is stored
)

// id identifies a key by its database and its name.
type id struct {
	database int
	name     string
}

// key is a followed key: a lock, a possible lock, or a part of a lock such as its queue, signal or channel.
type key struct {
	id
	place  *list.Element // in keys.used
	partOf *key          // the lock of which this key is a part; nil if it is not a part
	lock   lock
	empty  int64 // time of the last deletion of all keys that has been applied to lock, µs
}

// keys are the followed keys. When there are mostKeys, the next new key replaces a key that was not used for a long
// time.
type keys struct {
	all    map[id]*key
	used   *list.List // of *key, the last used first
	prefix string     // of the names of locks, from --prefix; "" without that flag
	forget func(*key)
	fresh  bool // the server was empty when the capture began, so a new key was not held before

	journal *journal // nil if no trace is needed

	allEmpty int64         // time of the last deletion of all keys in all databases, µs
	empty    map[int]int64 // time of the last deletion of all keys, by database, µs
}

func newKeys(prefix string, forget func(*key)) *keys {
	return &keys{all: map[id]*key{}, used: list.New(), prefix: prefix, forget: forget, empty: map[int]int64{}}
}

// find returns a followed key; nil if the key is not followed.
func (ks *keys) find(database int, name []byte) *key {
	k := ks.all[id{database, string(name)}]
	if k != nil {
		ks.used.MoveToFront(k.place)
		ks.update(k)
	}
	return k
}

// emptied records that all keys of a database, or of all databases, were deleted. update applies this to each key at
// the next use of the key.
func (ks *keys) emptied(database int, all bool, at int64) {
	if _, known := ks.empty[database]; all || !known && len(ks.empty) >= mostDatabases {
		ks.allEmpty = at
		return
	}
	ks.empty[database] = at
}

// update ends the lease of a key if all keys have been deleted since the last use of the key.
func (ks *keys) update(k *key) {
	if at := max(ks.allEmpty, ks.empty[k.database]); at > k.empty {
		k.lock.emptied(at)
		k.empty = at
	}
}

// follow returns a key and follows it from now on. It returns nil if the key's name is too long.
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

// drop stops following one of the least recently used keys, preferably a key without a lease and without waiters.
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

// ofLock matches the names of locks. noName matches names that a program built from a variable without a value.
var (
	ofLock = regexp.MustCompile(`(?i:(?:^|[^a-z])(?:lock|locks|mutex|lease|shedlock)(?:$|[^a-z]))|` +
		`[a-z](?:Lock|Mutex|Lease)(?:$|[^a-z])`)
	noName = regexp.MustCompile(`(?:^|[^A-Za-z0-9_])(?:undefined|null|None)(?:$|[^A-Za-z0-9_])`)
)

// named reports whether a name shows that its key is a lock: the name begins with the prefix or, if no prefix is given,
// matches ofLock.
func (ks *keys) named(name []byte) bool {
	if ks.prefix != "" {
		return bytes.HasPrefix(name, []byte(ks.prefix))
	}
	return len(name) <= longestKey && ofLock.Match(name)
}

// isLock reports whether a key is a lock. If a prefix is given, exactly the keys with this prefix are locks. Otherwise
// a key is a lock if
//   - the owner is compared in the same step in which the key is deleted, or the key is a hash like Redisson's locks,
//   - the key has a name such as lock:order:7,
//   - or clients rarely read the key, and the key is deleted after a GET, or the same owner tries again and the key is
//     deleted, or the same owner tries again more than once.
//
// The conditions of the last case exclude caches, which are also filled by SET NX.
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

// script stores what the executions of a script have shown about its purpose.
type script struct {
	does  act // tries, releases or renews; nothing if it is not yet known
	owner int // index of the owner in the arguments; −1 if it is not yet known
}
