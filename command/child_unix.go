//go:build unix

package command

import (
	"os/exec"
	"syscall"
)

// apart puts a run into a process group of its own: a Ctrl-C in the terminal would
// otherwise reach it twice, once from the terminal and once from us, and the second
// signal stops it uncleanly.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
