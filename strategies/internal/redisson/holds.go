package redisson

import (
	"strconv"
	"sync"
	"time"
)

// holds knows how often each owner holds a lock, for owners that may hold it more than once. A release
// says how many holds are to stay: sent again after a lost reply, it changes nothing more.
type holds struct {
	mu      sync.Mutex
	of      map[hold]*owned
	retired map[hold]int // by lock and owner: how many names of the owner are used no more
}

// hold is a lock and an owner of it.
type hold struct{ key, owner string }

// owned is what an owner has of a lock.
type owned struct {
	releasing sync.Mutex          // one release at a time: each says what the one before has left
	leases    map[*Lease]struct{} // holds.mu guards it
}

func newHolds() *holds { return &holds{of: map[hold]*owned{}, retired: map[hold]int{}} }

// name returns the name in Redis of an owner of a lock.
func (h *holds) name(key, owner string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := h.retired[hold{key, owner}]; n > 0 {
		return owner + "#" + strconv.Itoa(n)
	}
	return owner
}

// retire has the owner of a lease get another name: a release that frees the lock may still be under
// way, and must not free what the owner acquires next.
func (h *holds) retire(held *Lease) {
	if h.name(held.Key, held.as) != held.Owner {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retired[hold{held.Key, held.as}]++
}

// add notes one more hold, and returns the owner's earlier ones that have run out: they are none any
// more.
func (h *holds) add(held *Lease) (over []*Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.owned(held)
	now := time.Now()
	for other := range o.leases {
		if !now.Before(other.ValidUntil()) {
			delete(o.leases, other)
			over = append(over, other)
		}
	}
	o.leases[held] = struct{}{}
	return over
}

// owned returns what held's owner has of held's lock. The caller has the mutex.
func (h *holds) owned(held *Lease) *owned {
	of := hold{held.Key, held.Owner}
	o := h.of[of]
	if o == nil {
		o = &owned{leases: map[*Lease]struct{}{}}
		h.of[of] = o
	}
	return o
}

// lock waits until no other release of held's owner is under way.
func (h *holds) lock(held *Lease) (unlock func()) {
	h.mu.Lock()
	o := h.owned(held)
	h.mu.Unlock()
	o.releasing.Lock()
	return o.releasing.Unlock
}

// remove forgets a hold, says whether it was known, and returns how many stay.
func (h *holds) remove(held *Lease) (stay int, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := hold{held.Key, held.Owner}
	o := h.of[of]
	if o == nil {
		return 0, false
	}
	_, known = o.leases[held]
	delete(o.leases, held)
	if len(o.leases) == 0 {
		delete(h.of, of)
	}
	return len(o.leases), known
}
