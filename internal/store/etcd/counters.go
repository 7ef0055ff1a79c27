package etcd

import (
	"maps"
	"sync"
)

// restartCounters continues a member's counters over its restarts, at which they are reset.
type restartCounters struct {
	mu      sync.Mutex
	known   bool
	earlier counted // of processes that have ended
	now     counted
}

func (l *restartCounters) enter(c counted) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known && c.started != l.now.started {
		l.earlier = plus(l.earlier, l.now)
	}
	l.known, l.now = true, c
}

// read returns the sum; false if nothing was entered.
func (l *restartCounters) read() (counted, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := plus(l.earlier, l.now)
	sum.memory = l.now.memory
	return sum, l.known
}

// started returns when the member's process started, in seconds since 1970.
func (l *restartCounters) started() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now.started
}

func plus(a, b counted) counted {
	sum := counted{commands: maps.Clone(a.commands), started: b.started, cpu: b.cpu}
	if sum.commands == nil {
		sum.commands = map[string]int64{}
	}
	for command, calls := range b.commands {
		sum.commands[command] += calls
	}
	if a.cpu != nil && b.cpu != nil {
		both := *a.cpu + *b.cpu
		sum.cpu = &both
	}
	return sum
}
