package redisson

import (
	"sync"
	"time"
)

// holders are the owners that may hold a lock more than once, by their names in AcquireAs.
type holders struct {
	mu sync.Mutex
	of map[hold]*holder
}

// hold is a lock and the name of a holder of it.
type hold struct{ key, as string }

// holder is an owner with one hold for each of its leases. Its name in Redis is used until the last lease is
// released, and never again, so that a late release frees no lock that the owner has acquired since.
type holder struct {
	hold hold
	name string

	// holders.mu guards these two.
	leases map[*lease]struct{}
	open   <-chan struct{} // closed at the end of the last acquire without an answer; nil for none
}

// find returns the holder of that name if it has leases that have not run out, otherwise a new holder.
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

// leaveOpen makes the release of the holder's last lease undo an acquire without an answer. It reports whether the
// holder has a lease.
func (h *holders) leaveOpen(of *holder, asked <-chan struct{}) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(of.leases) == 0 {
		return false
	}
	of.open = asked
	return true
}

// openOf returns the end of the holder's last acquire without an answer, nil for none.
func (h *holders) openOf(of *holder) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return of.open
}

// remove removes a hold, reports whether it was known, and returns the number of the remaining ones.
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
