package handoff

import "github.com/lockbench/lockbench/strategies/handoff/internal/line"

// debt is an id that must neither hold nor wait: of a waiter that gave up, of a grant
// that came too late. It is owed until Redis has answered, over all breaks.
type debt struct {
	id, lock, entry string
	paid            chan struct{}
}

// owe releases an id, or has it leave the queue if its entry is given. The caller
// holds mu, and flushes.
func (h *home) owe(id, lock, entry string) *debt {
	d := &debt{id: id, lock: lock, entry: entry, paid: make(chan struct{})}
	h.debts[id] = d
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
		h.mu.Unlock()
		return
	case reply.Err != nil && transient(reply.Err):
		h.line.Break()
		h.mu.Unlock()
		return
	case reply.Err != nil && unknown(reply.Err):
		h.load(releaseScript)
		h.pay(d)
	default:
		delete(h.debts, d.id)
		close(d.paid)
	}
	h.mu.Unlock()
	h.passed(d.lock, a)
	h.line.Flush()
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
