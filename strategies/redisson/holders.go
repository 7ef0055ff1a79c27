package redisson

import (
	"sync"
	"time"
)

// holders finds a holder by the key of its lock and the owner's name that was passed to AcquireAs.
type holders struct {
	mu sync.Mutex
	of map[hold]*holder
}

// hold identifies a holder by the key of its lock and the owner's name that was passed to AcquireAs.
type hold struct{ key, as string }

// holder is an owner with one hold for each of its leases. After its last lease is released, its name in Redis is never
// used again, so that a late release cannot free a lock that the same owner has acquired since.
type holder struct {
	hold hold
	name string

	// holders.mu guards the two fields below.
	leases map[*lease]struct{}
	open   <-chan struct{} // closed at the end of the last acquire that got no reply; nil if there is none
}

// find returns the known holder if one of its leases is still valid; otherwise it returns a new holder with a new name.
func (h *holders) find(of hold, name func() string) *holder {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.of[of]; known != nil {
		now := time.Now()
		for held := range known.leases {
			if now.Before(held.ValidUntil()) {
				return known
			}
		}
	}
	return &holder{hold: of, name: name(), leases: map[*lease]struct{}{}}
}

// add records a lease as one more hold of its holder.
func (h *holders) add(held *lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		h.of = map[hold]*holder{}
	}
	h.of[held.holder.hold] = held.holder
	held.holder.leases[held] = struct{}{}
}

// leaveOpen records that an acquire of the holder got no reply. The release of the holder's last lease then undoes this
// acquire too. It returns false and records nothing if the holder has no lease.
func (h *holders) leaveOpen(of *holder, asked <-chan struct{}) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(of.leases) == 0 {
		return false
	}
	of.open = asked
	return true
}

// openOf returns the channel that is closed at the end of the holder's last acquire without a reply, or nil if there is
// none.
func (h *holders) openOf(of *holder) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return of.open
}

// remove removes a lease from its holder. It returns the number of the holder's remaining leases, and whether the lease
// was known.
func (h *holders) remove(held *lease) (stay int, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := held.holder
	_, known = of.leases[held]
	delete(of.leases, held)
	if len(of.leases) == 0 && h.of[of.hold] == of {
		delete(h.of, of.hold)
	}
	return len(of.leases), known
}

func (h *holders) count(of *holder) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(of.leases)
}
