package observe

import (
	"crypto/rand"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockbench/lockbench/internal/driver"
)

// child is a command in a process group of its own.
type child struct {
	cmd    *exec.Cmd
	mark   string        // in the environment of all that it starts
	exited chan struct{} // closed when it and all that it has started have ended

	mu     sync.Mutex
	reaped bool // the ID of the process group may be another's
}

// begin starts a command. The kernel kills it when this process ends. What it has started is killed when it ends, also
// what is in a session of its own.
func begin(cmd *exec.Cmd) (*child, error) {
	mark := "OBSERVED_BY_LOCKBENCH_" + rand.Text() + "=1" // a name of its own: an observed command may observe others
	p := &child{cmd: cmd, mark: mark, exited: make(chan struct{})}
	cmd.Env = append(cmd.Env, p.mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() { // ends with the command, which kill ends
		runtime.LockOSThread() // the parent, for Pdeathsig, is this thread
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		var info unix.Siginfo
		for unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
		}
		p.terminate() // what it has started
		for end := time.Now().Add(endPatience); driver.IsMarked(p.mark) && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		p.kill() // before it is waited for: until then the ID of its process group is no other's
		p.mu.Lock()
		p.reaped = true
		p.mu.Unlock()
		_ = cmd.Wait()
	}()
	return p, <-started
}

// terminate asks the command and its process group to end.
func (p *child) terminate() { p.signal(syscall.SIGTERM) }

// kill ends the command and all that it has started.
func (p *child) kill() {
	p.signal(syscall.SIGKILL)
	driver.KillMarked(p.mark)
}

func (p *child) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = syscall.Kill(-p.cmd.Process.Pid, s)
	}
}
