//go:build !linux

package launch

import (
	"errors"
	"os"
	"syscall"
)

// There is no /proc on these systems. An owner counts as alive while its pid is in use, and no
// server counts as abandoned.

func startTime(int) string { return "" }

func bootID() string { return "" }

func pidNamespace() string { return "" }

func alive(pid int) bool {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = process.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, os.ErrPermission)
}

func (owner) killServer() ([]int, error) {
	return nil, errors.New("the server in it, if it still runs, must be stopped by hand")
}

// Runs returns false: it needs Linux.
func Runs(int, ...string) bool { return false }

func descendants(int) []int { return nil }

func endAll([]int) {}

func cpuOf(int, []int) *float64 { return nil }
