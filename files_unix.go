//go:build unix

package lockbench

import "syscall"

// maxOpenFiles is how many files and connections this process may open; 0 where
// there is no limit.
func maxOpenFiles() (int64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	// Go has raised the soft limit to the hard one at start.
	if limit.Cur > 1<<40 {
		return 0, nil
	}
	return int64(limit.Cur), nil
}
