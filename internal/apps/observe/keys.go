package observe

import (
	"container/list"
	"strings"
)

// Limits of what a stream can have us remember.
const (
	mostKeys    = 20_000  // followed at a time
	mostWaiters = 200_000 // of all keys
	mostScripts = 4096
	longestKey  = 512 // bytes of a key's name
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
}

// keys are those that are followed. If there are too many, the one that was not used for longest is forgotten.
type keys struct {
	all    map[id]*key
	used   *list.List // of *key, the last used first
	prefix string     // of the locks, if the user says it
	forget func(*key)
}

func newKeys(prefix string, forget func(*key)) *keys {
	return &keys{all: map[id]*key{}, used: list.New(), prefix: prefix, forget: forget}
}

// find returns a key that is followed; nil if it is not.
func (ks *keys) find(database int, name []byte) *key {
	k := ks.all[id{database, string(name)}]
	if k != nil {
		ks.used.MoveToFront(k.place)
	}
	return k
}

// follow returns a key, which is followed from now on; nil if it cannot be: its name is too long.
func (ks *keys) follow(database int, name []byte, at int64) *key {
	if k := ks.find(database, name); k != nil || len(name) > longestKey {
		return k
	}
	if len(ks.all) >= mostKeys {
		ks.drop()
	}
	k := &key{id: id{database, string(name)}}
	k.lock.seen = at
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

// isLock says whether a key is a lock. With a prefix that decides. Otherwise its owner is compared when it is deleted
// or renewed, or it is tried again by the same owner; then it must have been deleted at some time, or tried again more
// than once, and clients do not read it: caches are filled by SET NX as well.
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
