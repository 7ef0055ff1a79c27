package redisson

import (
	"sync"
	"time"
)

// holds knows how often each owner holds a lock, for owners that may hold it more than once. A release
// says how many holds are to stay: sent again after a lost reply, it changes nothing more.
type holds struct {
	mu sync.Mutex
	of map[hold]*owned
}

// hold is a lock and an owner of it.
type hold struct{ key, owner string }

// owned is what an owner has of a lock.
type owned struct {
	releasing sync.Mutex          // one release at a time: each says what the one before has left
	leases    map[*Lease]struct{} // holds.mu guards it
}

func newHolds() *holds { return &holds{of: map[hold]*owned{}} }

// add notes one more hold. Earlier ones that have run out are none.
func (h *holds) add(held *Lease) {
	o := h.owned(held)
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for other := range o.leases {
		if !now.Before(other.ValidUntil()) {
			delete(o.leases, other)
		}
	}
	o.leases[held] = struct{}{}
}

// owned returns what held's owner has of held's lock.
func (h *holds) owned(held *Lease) *owned {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := hold{held.Key, held.Owner}
	o := h.of[of]
	if o == nil {
		o = &owned{leases: map[*Lease]struct{}{}}
		h.of[of] = o
	}
	return o
}

// remove forgets a hold, if it was not forgotten before, and returns how many stay.
func (h *holds) remove(held *Lease) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := hold{held.Key, held.Owner}
	o := h.of[of]
	if o == nil {
		return 0
	}
	delete(o.leases, held)
	if len(o.leases) == 0 {
		delete(h.of, of)
	}
	return len(o.leases)
}
