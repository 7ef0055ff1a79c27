package launch

import "testing"

// A reading of the same process that goes back a little is no restart; another process is one.
func TestCPUTime(t *testing.T) {
	t.Parallel()
	var used cpuTime
	if used.read(0, nil) != nil {
		t.Error("no process is known")
	}
	for _, r := range []struct {
		pid  int
		used float64
	}{{1, 5}, {1, 4.75}, {1, 5.25}, {2, 6}, {2, 6.5}, {3, 0.5}} {
		used.enter(r.pid, r.used)
	}
	if sum := used.read(0, nil); sum == nil || *sum != 12.25 {
		t.Errorf("it is %v", sum)
	}
}
