//go:build !linux

package launch

import (
	"errors"
	"io"
	"os/exec"
	"syscall"
)

// On these systems, which have no /proc, a server outlives a killed lockbench. Its directory is not locked, and no
// sweep removes it.

func bind(*exec.Cmd) {}

func lockDir(string) (io.Closer, error) { return nil, errors.ErrUnsupported }

// Runs always returns false, because without /proc the program of a process is not known.
func Runs(int, ...string) bool { return false }

func descendants(int) []int { return nil }

func endAll([]int) {}

func cpuOf(int) *float64 { return nil }

func keep(int) (io.Closer, error) { return nil, errors.ErrUnsupported }

func exclusive(_, _ string, _ syscall.RawConn) error { return nil }
