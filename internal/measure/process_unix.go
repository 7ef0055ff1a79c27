//go:build unix

package measure

import (
	"runtime"
	"syscall"
	"time"
)

// processCPU returns the CPU time of this process, user and system.
func processCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// MaxOpenFiles returns how many files and connections this process may have open; 0 means no limit.
func MaxOpenFiles() (int64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	// At start Go raised the soft limit to the hard limit, so Cur is the effective one.
	if limit.Cur > 1<<40 {
		return 0, nil
	}
	return int64(limit.Cur), nil
}

// PeakRSS returns the peak resident memory of this process so far, in bytes.
func PeakRSS() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return usage.Maxrss // in bytes on this system, in KiB on others
	}
	return usage.Maxrss * 1024
}
