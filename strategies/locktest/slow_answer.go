package locktest

import (
	"fmt"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/network"
	"github.com/lockbench/lockbench/strategies"
)

// slowAnswer delays the servers' answers to an acquire for longer than the TTL, until another
// client has the lock. The lock is free, or it is released to the waiter.
func slowAnswer(s *stage) {
	holder, other := s.open(longTTL), s.open(longTTL)
	late := s.open(staleTTL)
	_ = s.again(s.acquire(late, "key")) // this opens its connections; the lease may have run out
	for _, waits := range []bool{false, true} {
		for step := range steps {
			var there bool
			s.replay(staleTTL, func(time.Duration) (fault string, by time.Duration) {
				there, by = s.answeredLate(late, holder, other, waits, step)
				if by > 0 {
					fault = fmt.Sprintf("an acquire returned a lease %v after its end", by)
				}
				return fault, by / 2
			})
			if !there {
				break
			}
		}
	}
}

// answeredLate lets step answers through and delays the others. It says whether there was
// such an answer, and how long after its end a lease was returned.
func (s *stage) answeredLate(late, holder, other *instance, waits bool, step int) (there bool, ended time.Duration) {
	var held []strategies.Lease
	var gate *network.Gate
	if waits {
		held = s.fill(holder, "key")
	} else {
		gate = late.wire.Hold(network.Answers, step)
	}
	began := time.Now()
	w := s.waiterFor(late, "key", late.Acquire)
	if waits {
		w.parked()
		gate = late.wire.Hold(network.Answers, step)
		s.release(held...)
	}
	caught := w.meets(gate)
	if !caught {
		gate.Open()
		w.returned("an acquire")
		if w.err != nil {
			s.fatalf("acquire: %v", w.err)
		}
		_ = s.again(w.lease) // the lease may have run out
		return false, 0
	}
	next := s.fill(other, "key") // granted once the lease without an answer has run out
	taken := time.Now()
	gate.Open()
	for end := time.Now().Add(soon); !w.isOver() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	w.quiet()
	if w.isOver() && w.err == nil && w.over.After(taken) { // a quorum may have had enough answers
		s.fatalf("an acquire whose answer took %v returned a lease of %v, and another has the lock",
			w.over.Sub(began).Round(time.Millisecond), staleTTL)
	}
	s.release(next...)
	if w.returned("an acquire whose answer was slow"); w.err != nil {
		return true, 0
	}
	ended = max(0, w.over.Sub(validUntil(w.lease, w.over, staleTTL)))
	_ = s.again(w.lease)
	return true, ended
}
