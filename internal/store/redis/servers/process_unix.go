//go:build unix

package servers

import (
	"os"
	"os/exec"
	"syscall"
)

// detach puts the child into a process group of its own: a Ctrl-C in the
// terminal must not end Redis before lockbench has finished with it.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

func pause(p *os.Process) error  { return p.Signal(syscall.SIGSTOP) }
func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
