//go:build !linux

package launch

import (
	"errors"
	"io"
	"os/exec"
	"syscall"
)

// These systems have no /proc. Servers outlive their lockbench there, so their directories are not locked and remain.

func bind(*exec.Cmd) {}

func lockDir(string) (io.Closer, error) { return nil, errors.ErrUnsupported }

// Runs returns false, because it needs Linux.
func Runs(int, ...string) bool { return false }

func descendants(int) []int { return nil }

func endAll([]int) {}

func cpuOf(int) *float64 { return nil }

func keep(int) (io.Closer, error) { return nil, errors.ErrUnsupported }

func exclusive(_, _ string, _ syscall.RawConn) error { return nil }
