package measure

import (
	"time"

	"golang.org/x/sys/unix"
)

// Affinity returns the CPUs on which a process may run, in order; pid 0 is this process. It returns nil if the process
// does not exist or the system does not report its CPUs.
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

// realTime returns the time since the machine started, including suspensions, which Go's monotonic clock omits.
func realTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
