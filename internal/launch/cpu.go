package launch

import "sync"

// CPUTime sums the CPU time of a server over its processes, of which a restart begins a new one.
type CPUTime struct {
	mu          sync.Mutex
	pid         int     // of the last process; 0 if none is known
	ended, last float64 // seconds: of all earlier processes, and of the last one
}

// Read returns the sum in seconds, including all descendants; nil if no process was ever known. pid is the current
// process, or 0 if it is not known. A process that has ended counts with its value at the last reading.
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
// they count ended threads in ticks and live threads in nanoseconds.
func (t *CPUTime) enter(pid int, used float64) {
	if pid != t.pid {
		t.ended, t.pid, t.last = t.ended+t.last, pid, 0
	}
	t.last = max(t.last, used)
}
