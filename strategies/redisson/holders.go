package redisson

import (
	"sync"
	"time"
)

// holders has the owners that hold locks through AcquireAs, by the lock and the owner's name.
type holders struct {
	mu sync.Mutex
	of map[hold]*holder
}

// hold identifies a holder: a lock's key and the owner's name in AcquireAs.
type hold struct{ key, as string }

// holder is an owner with one hold for each of its leases. After its last lease is released, its name in Redis is never
// used again, so that a late release cannot free a lock that the same owner has acquired since.
type holder struct {
	hold hold
	name string

	// holders.mu guards these two.
	leases map[*lease]struct{}
	open   <-chan struct{} // closed at the end of the last acquire that got no reply; nil if there is none
}

// find returns the known holder if one of its leases is still valid, otherwise a new holder.
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

// add records one more hold.
func (h *holders) add(held *lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		h.of = map[hold]*holder{}
	}
	h.of[held.holder.hold] = held.holder
	held.holder.leases[held] = struct{}{}
}

// leaveOpen makes the release of the holder's last lease undo an acquire that got no reply. It returns false, without
// effect, if the holder has no lease.
func (h *holders) leaveOpen(of *holder, asked <-chan struct{}) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(of.leases) == 0 {
		return false
	}
	of.open = asked
	return true
}

// openOf returns the holder's field open.
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

// count returns the number of a holder's leases.
func (h *holders) count(of *holder) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(of.leases)
}
