//go:build unix

package command

import (
	"os/exec"
	"syscall"
)

// apart puts a child into its own process group. Without it, a Ctrl-C would reach the child twice, from the terminal
// and from this process, and the second signal would make the child abandon its run.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
