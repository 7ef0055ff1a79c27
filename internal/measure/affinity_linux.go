package measure

import "golang.org/x/sys/unix"

// Affinity are the CPUs that a process may run on, in order, 0 being this one; nil where
// it is gone, or the system does not say.
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
