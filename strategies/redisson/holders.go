package redisson

import (
	"sync"
	"time"
)

// holders are those that may hold a lock more than once, by their names in AcquireAs.
type holders struct {
	mu sync.Mutex
	of map[hold]*holder
}

// hold is a lock and the name of a holder of it.
type hold struct{ key, as string }

// holder is somebody who holds a lock as often as it has leases. Its name in Redis is used until
// the last of them is released, and never again: a release that comes late frees nothing that
// the holder has acquired since.
type holder struct {
	hold hold
	name string

	// holders.mu guards these two.
	leases map[*lease]struct{}
	open   <-chan struct{} // of the last acquire without an answer, closed at its end; nil for none
}

// find returns the holder with leases that have not run out, or else a new one with that name.
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

// add notes one more hold.
func (h *holders) add(held *lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		h.of = map[hold]*holder{}
	}
	h.of[held.holder.hold] = held.holder
	held.holder.leases[held] = struct{}{}
}

// leaveOpen leaves it to the release of the holder's last lease to undo an acquire without an answer. It says whether
// the holder has a lease.
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

// remove forgets a hold, says whether it was known, and returns how many stay.
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

// count returns how many leases a holder has.
func (h *holders) count(of *holder) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(of.leases)
}
