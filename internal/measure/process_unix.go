//go:build unix

package measure

import (
	"runtime"
	"syscall"
	"time"
)

// processCPU is the CPU time of this process, user and system.
func processCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// PeakRSS is the largest resident memory of this process so far, in bytes.
func PeakRSS() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return usage.Maxrss // bytes there, KiB elsewhere
	}
	return usage.Maxrss * 1024
}
