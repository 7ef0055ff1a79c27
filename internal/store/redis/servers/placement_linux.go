package servers

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// affinityOf are the CPUs that a process may run on; nil if it is gone.
func affinityOf(pid int) []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		return nil
	}
	return listed(&set)
}

// listed are the CPUs of a set, in order.
func listed(set *unix.CPUSet) []int {
	var cpus []int
	for cpu := 0; len(cpus) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// isServer says whether a process of this machine is a Redis, and by its title the one
// that listens on that port, unless that is "".
func isServer(pid int, port string) bool {
	if pid <= 0 {
		return false
	}
	if !isServerProcess(pid) {
		return false
	}
	title, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return err == nil && bytes.Contains(title, []byte(port))
}
