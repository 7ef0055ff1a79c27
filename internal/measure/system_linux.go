package measure

import (
	"time"

	"golang.org/x/sys/unix"
)

// Affinity returns the CPUs that a process may run on, in order; pid 0 is this process. It
// returns nil if the process does not exist or the system does not say.
func Affinity(pid int) []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		return nil
	}
	var cpus []int
	for cpu := 0; len(cpus) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// realTime is the time since the machine started, suspensions included: Go's monotonic clock
// leaves them out.
func realTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
