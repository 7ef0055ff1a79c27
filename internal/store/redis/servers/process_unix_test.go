//go:build unix

package servers

import (
	"syscall"
	"testing"
)

// A Ctrl-C in the terminal goes to the whole process group.
func TestProcessGroup(t *testing.T) {
	p := process(t)
	group, err := syscall.Getpgid(p.PID())
	if err != nil || group == syscall.Getpgrp() {
		t.Errorf("Redis is in our process group %d, %v", group, err)
	}
}
