package etcd

import (
	"maps"
	"sync"
)

// restartCounters keeps what a member has counted over its restarts, after which it begins anew.
type restartCounters struct {
	mu      sync.Mutex
	known   bool
	earlier counted // of processes that have ended
	now     counted
	spent   float64 // CPU time of processes of ours that have ended
}

func (l *restartCounters) enter(c counted) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known && c.started != l.now.started {
		l.earlier = plus(l.earlier, l.now)
	}
	l.known, l.now = true, c
}

// read is the sum; false if nothing was entered.
func (l *restartCounters) read() (counted, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := plus(l.earlier, l.now)
	sum.memory = l.now.memory
	return sum, l.known
}

// started is when the member's process was, in seconds since 1970.
func (l *restartCounters) started() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now.started
}

// ending adds what a process of ours has used that is about to end.
func (l *restartCounters) ending(cpu *float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cpu != nil {
		l.spent += *cpu
	}
}

// own is what processes of ours have used, with that of the last one.
func (l *restartCounters) own(cpu *float64) *float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := l.spent
	switch {
	case cpu != nil:
		sum += *cpu
	case sum == 0: // it does not tell; else it has ended
		return nil
	}
	return &sum
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
