package locktest

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"
)

// Model is the lock that CheckHistory compares a history with.
type Model int

const (
	// Mutex is held by one lease at a time, and released by that one only.
	Mutex Model = iota
	// FencedMutex is a Mutex in which each lease has a larger token than all leases before
	// it.
	FencedMutex
)

// String returns the name that a failure uses.
func (m Model) String() string {
	if m == FencedMutex {
		return "fenced mutex"
	}
	return "mutex"
}

// expired is the event that a lease's validity has ended; no client sees it.
const expired Event = -1

// state is a lock between two operations.
type state struct {
	lease int   // the lease that holds it, 0 for none
	maybe bool  // no lease is known to hold it, but a failed acquire may
	token int64 // the last one given
}

// step says whether an operation could have happened in a state, and returns the state after
// it.
//
// A failed acquire may hold the lock: until the next successful acquire it may be the reason
// why a try is refused. A lease that has expired may be gone: Redis ends it no sooner, but no
// client knows exactly when, so the event may come later.
func (m Model) step(s state, o Operation) (bool, state) {
	switch o.Event {
	case Acquired:
		if s.lease != 0 || m == FencedMutex && o.Token <= s.token {
			return false, s
		}
		return true, state{lease: o.Lease, token: o.Token}
	case Failed:
		s.maybe = s.maybe || s.lease == 0
		return true, s
	case Refused:
		return s.lease != 0 || s.maybe, s
	case Released:
		return s.lease == o.Lease, state{token: s.token}
	case Lost:
		return s.lease != o.Lease, s
	default: // Unclear, expired
		if s.lease == o.Lease {
			s.lease = 0
		}
		return true, s
	}
}

func (m Model) porcupine() porcupine.Model {
	return porcupine.Model{
		Partition: byKey,
		Init:      func() any { return state{} },
		Step: func(s, operation, _ any) (bool, any) {
			return m.step(s.(state), operation.(Operation))
		},
		DescribeOperation: func(operation, _ any) string { return operation.(Operation).String() },
		DescribeState:     func(s any) string { return s.(state).String() },
	}
}

func byKey(history []porcupine.Operation) [][]porcupine.Operation {
	var order []string
	keys := map[string][]porcupine.Operation{}
	for _, o := range history {
		key := o.Input.(Operation).Key
		if keys[key] == nil {
			order = append(order, key)
		}
		keys[key] = append(keys[key], o)
	}
	var parts [][]porcupine.Operation
	for _, key := range order {
		parts = append(parts, keys[key])
	}
	return parts
}

// String returns the operation as a drawing shows it.
func (o Operation) String() string {
	text := map[Event]string{
		Acquired: "acquire → lease %d", Failed: "acquire → failed, may hold", Refused: "try → held",
		Released: "release lease %d", Lost: "release lease %d → not held",
		Unclear: "release lease %d → failed, may be free",
		expired: "lease %d is valid no longer",
	}[o.Event]
	if o.Lease != 0 {
		text = fmt.Sprintf(text, o.Lease)
	}
	if o.Token != 0 {
		text += fmt.Sprintf(", token %d", o.Token)
	}
	if o.Until != 0 {
		text += fmt.Sprintf(", valid until %v", o.Until.Round(time.Microsecond))
	}
	return text
}

func (s state) String() string {
	switch {
	case s.lease != 0:
		return fmt.Sprintf("lease %d holds", s.lease)
	case s.maybe:
		return "free, or held by a failed acquire"
	}
	return "free"
}
