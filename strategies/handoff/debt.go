package handoff

import (
	"context"

	"github.com/lockbench/lockbench/strategies/handoff/internal/line"
	"github.com/lockbench/lockbench/strategies/internal/doubt"
)

// debt is an id that must neither hold nor wait: of a waiter that gave up, of a grant
// that came too late. It is owed until Redis has done it, over all breaks and refusals.
type debt struct {
	id, lock, entry string
	answered        chan struct{} // closed by Redis's first answer
	refused         bool          // by the last; to be paid again
}

// owe releases an id, or has it leave the queue if its entry is given. The caller
// holds mu, and flushes.
func (h *home) owe(id, lock, entry string) *debt {
	d := &debt{id: id, lock: lock, entry: entry, answered: make(chan struct{})}
	h.debts[id] = d
	delete(h.held, id)
	h.pay(d)
	return d
}

// pay puts the command. The caller holds mu.
func (h *home) pay(d *debt) {
	if h.connection != 0 {
		h.run(then(func(reply line.Reply) { h.paid(d, reply) }), releaseScript, d.lock, d.id, d.entry, "")
		h.wake()
	}
}

func (h *home) paid(d *debt, reply line.Reply) {
	var a answer
	if reply.Err == nil {
		a = parseAnswer(reply.Text)
	}
	h.mu.Lock()
	switch {
	case reply.Err == line.ErrBroken: //nolint:errorlint // it is never wrapped
	case reply.Err == nil || untold(reply.Err):
		delete(h.debts, d.id)
		d.answer()
	case transient(reply.Err): // it is paid on the next connection
		h.hangUp(reply.Err)
		d.answer()
	case unknown(reply.Err):
		h.load(releaseScript)
		h.pay(d)
	default:
		d.refused = true
		d.answer()
	}
	h.mu.Unlock()
	h.passed(d.lock, a)
	h.line.Flush()
}

func (d *debt) answer() {
	select {
	case <-d.answered:
	default:
		close(d.answered)
	}
}

// wait waits for the answer, also when ctx has ended, but not for long: it stays owed.
func (d *debt) wait(ctx context.Context) {
	settle, done := doubt.Settle(ctx)
	defer done()
	select {
	case <-d.answered:
	case <-settle.Done():
	}
}

// remind pays what was refused once more. The caller holds mu, and flushes.
func (h *home) remind() {
	for _, d := range h.debts {
		if d.refused {
			d.refused = false
			h.pay(d)
		}
	}
}

// passed takes what a release has said of a lock.
func (h *home) passed(name string, a answer) {
	if len(a.grant) == 0 && !a.more {
		return
	}
	h.mu.Lock()
	l := h.locks[name]
	if l == nil {
		l = &lock{name: name}
	}
	h.mu.Unlock()
	h.heard(l, a)
}
