package servers

import (
	"sync"

	"github.com/lockbench/lockbench/results"
)

// restartCounters continues a node's counters over its restarts, at which Redis resets them, and
// while it is down.
type restartCounters struct {
	mu    sync.Mutex
	runID string
	past  *results.Reading // sum over the earlier processes; nil for the first
	last  *results.Reading // the last reading of the current process
	down  bool
}

// enter adds a reading of the process runID.
func (l *restartCounters) enter(runID string, r results.Reading) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != nil && runID != l.runID {
		past := l.total()
		past.Clients, past.Memory = 0, 0 // values of a past instant
		l.past = &past
	}
	l.runID, l.last, l.down = runID, &r, false
}

// miss notes that the node does not answer.
func (l *restartCounters) miss() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
}

// read returns the node's counts over all its processes at its last answer; false if it never
// answered.
func (l *restartCounters) read() (results.Reading, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		return results.Reading{}, false
	}
	sum := l.total()
	if l.down {
		sum.Clients, sum.Memory = 0, 0
	}
	return sum, true
}

func (l *restartCounters) total() results.Reading {
	if l.past == nil {
		return *l.last
	}
	return l.past.Plus(*l.last)
}
