package servers

import (
	"sync"

	"github.com/lockbench/lockbench/results"
)

// restartCounters carries a node's counters over its restarts, with which Redis begins to
// count anew, and over the time it is down.
type restartCounters struct {
	mu    sync.Mutex
	runID string
	past  *results.Reading // of the earlier lives; nil for the first
	last  *results.Reading // of this life
	down  bool
}

// enter takes a reading of the life runID.
func (l *restartCounters) enter(runID string, r results.Reading) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != nil && runID != l.runID {
		past := l.total()
		past.Clients, past.Memory = 0, 0 // which say nothing of any other instant
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

// read is what the node had counted in all its lives when it last answered; it
// is false if it never has.
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
