package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// SetAffinity moves all threads of a process to those CPUs; pid 0 is this process. A new thread
// inherits its creator's CPUs, so a second pass moves those that a thread not yet moved created
// during the first.
func SetAffinity(pid int, cpus []int) error {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	process := "self"
	if pid != 0 {
		process = strconv.Itoa(pid)
	}
	for range 2 {
		threads, err := os.ReadDir(filepath.Join("/proc", process, "task"))
		if err != nil {
			return fmt.Errorf("list the threads: %w", err)
		}
		for _, thread := range threads {
			tid, err := strconv.Atoi(thread.Name())
			if err != nil {
				continue
			}
			if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("set the CPUs of thread %d: %w", tid, err)
			}
		}
	}
	return nil
}
