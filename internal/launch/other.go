//go:build !linux

package launch

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// There is no /proc on these systems. An owner counts as alive while its pid is in use, and its servers
// outlive it.

const endsWithUs = false

func bind(*exec.Cmd) {}

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

// Runs returns false: it needs Linux.
func Runs(int, ...string) bool { return false }

func descendants(int) []int { return nil }

func endAll([]int) {}

func cpuOf(int, []int) *float64 { return nil }

func keep(int) (io.Closer, error) { return nil, errors.ErrUnsupported }

func exclusive(_, _ string, _ syscall.RawConn) error { return nil }

// SetAffinity returns an error: it needs Linux.
func SetAffinity(int, []int) error { return errors.ErrUnsupported }
