package handoff

import (
	"time"

	"github.com/lockbench/lockbench/strategies/handoff/internal/line"
)

// A rush are so many turns of a process in a row, each within linger of the one before;
// after those of a party within linger times their number, so that turns come as often
// on average. Where they are rarer, order is worth more than a packet.
const rush = 4

// turned notes that the lock was handed to so many of this process. The caller holds mu.
func (l *lock) turned(now time.Time, linger time.Duration, size int) {
	if !l.hurries(now, linger) {
		l.turns = 0
	}
	l.turn, l.party = now, size
	l.turns += size
}

func (l *lock) hurries(now time.Time, linger time.Duration) bool {
	return now.Sub(l.turn) <= linger*time.Duration(l.party)
}

// lingers says whether a request behind another of this process may be late. Nothing
// waits for it: before the other has been served it would not be, and the other's
// release takes it along. The caller holds mu.
func (h *home) lingers(l *lock, now time.Time) bool {
	return h.linger > 0 && l.turns >= rush && l.hurries(now, h.linger)
}

// open says whether a place may be joined: for as long after it was queued as another
// request might have lingered, and no longer if no answer says that it was. The caller
// holds mu.
func (h *home) open(p *place, now time.Time) bool {
	return p != nil && h.places[p.id] == p && p.connection == h.connection && len(p.seats) < crowd &&
		now.Sub(p.asked) <= 2*h.linger && (p.queued.IsZero() || now.Sub(p.queued) <= h.linger)
}

// putLate puts a command that lingers. The caller holds mu.
func (h *home) putLate(call line.Call, command ...string) bool {
	if !h.lingering {
		h.lingering = true
		h.late.Reset(h.linger)
	}
	return h.line.PutLate(call, command...)
}

// push sends what has lingered.
func (h *home) push() {
	h.mu.Lock()
	h.lingering = false
	h.mu.Unlock()
	h.line.Push()
}
