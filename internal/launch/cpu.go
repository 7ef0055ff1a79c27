package launch

import "sync"

// CPUTime adds up the CPU time of a server over its restarts, each of which begins a new process. It is safe for
// concurrent use.
type CPUTime struct {
	mu          sync.Mutex
	pid         int     // of the last process; 0 if none is known
	ended, last float64 // seconds: of all earlier processes, and of the last one
}

// Read returns the total CPU time in seconds, including that of all descendants, or nil if no process was ever known.
// pid is the server's current process, or 0 if that is not known. For a process that has ended, Read uses the last
// value that it read.
func (t *CPUTime) Read(pid int) *float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if pid > 0 {
		if now := cpuOf(pid); now != nil {
			t.enter(pid, *now)
		}
	}
	if t.pid == 0 {
		return nil
	}
	sum := t.ended + t.last
	return &sum
}

// enter records the CPU time that a process has used. Consecutive values of one process may decrease a little, because
// the kernel counts the time of ended threads in ticks and that of live threads in nanoseconds.
func (t *CPUTime) enter(pid int, used float64) {
	if pid != t.pid {
		t.ended, t.pid, t.last = t.ended+t.last, pid, 0
	}
	t.last = max(t.last, used)
}
