//go:build !linux

package launch

import (
	"errors"
	"io"
	"os/exec"
	"syscall"
)

// There is no /proc on these systems. Servers outlive their lockbench, so their directories are not locked and stay.

func bind(*exec.Cmd) {}

func lockDir(string) (io.Closer, error) { return nil, errors.ErrUnsupported }

// Runs returns false: it needs Linux.
func Runs(int, ...string) bool { return false }

func descendants(int) []int { return nil }

func endAll([]int) {}

func cpuOf(int) *float64 { return nil }

func keep(int) (io.Closer, error) { return nil, errors.ErrUnsupported }

func exclusive(_, _ string, _ syscall.RawConn) error { return nil }
