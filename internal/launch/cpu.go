package launch

import "sync"

// CPUTime is the CPU time of a server's processes, one after the other.
type CPUTime struct {
	mu          sync.Mutex
	pid         int     // of the last process; 0 if none is known
	ended, last float64 // seconds: of the processes before it, and of it
}

// Read returns the sum in seconds, with that of all descendants; nil if no process was ever known. pid is the process
// now, 0 if not known. A process that has ended counts with what it had used at the last reading.
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

// enter notes what a process has used. Readings of one process may go back a little: they count the
// ticks of threads that have ended, and the nanoseconds of the others.
func (t *CPUTime) enter(pid int, used float64) {
	if pid != t.pid {
		t.ended, t.pid, t.last = t.ended+t.last, pid, 0
	}
	t.last = max(t.last, used)
}
