package strategies

import "sync/atomic"

// Probe counts events that only the strategy itself can see. A nil Probe is valid and counts nothing, so a strategy
// needs no check for nil.
type Probe struct {
	attempts, useful, futile atomic.Int64
}

// ProbeCounts are the totals of a Probe since its creation.
type ProbeCounts struct {
	Attempts int64 // tries to take the lock at Redis, each a command or a script
	Useful   int64 // wake-ups whose next attempt got the lock
	Futile   int64 // wake-ups whose next attempt failed
}

// Attempt counts one try to take the lock in its store.
func (p *Probe) Attempt() {
	if p != nil {
		p.attempts.Add(1)
	}
}

// Wake counts one wake-up of a parked waiter, by a message, a reply or a timer. useful is true if the attempt that
// followed got the lock.
func (p *Probe) Wake(useful bool) {
	switch {
	case p == nil:
	case useful:
		p.useful.Add(1)
	default:
		p.futile.Add(1)
	}
}

// Counts returns the totals so far. For a nil Probe, all totals are 0.
func (p *Probe) Counts() ProbeCounts {
	if p == nil {
		return ProbeCounts{}
	}
	return ProbeCounts{p.attempts.Load(), p.useful.Load(), p.futile.Load()}
}
