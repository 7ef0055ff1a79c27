//go:build unix

package command

import (
	"os/exec"
	"syscall"
)

// apart puts a child into its own process group. Otherwise a Ctrl-C would reach the child twice, from the terminal and
// from this process, and the second signal would make it abandon its run.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
