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

// child is a command in a separate process group.
type child struct {
	cmd    *exec.Cmd
	mark   string        // variable in the environment of the command and its descendants
	exited chan struct{} // closed when the command and its descendants have ended

	mu     sync.Mutex
	reaped bool // another process group may have the ID by now
}

// begin starts a command. The kernel kills the command when lockbench ends. When the command ends, a goroutine kills
// its descendants, including those in another session.
func begin(cmd *exec.Cmd) (*child, error) {
	mark := "OBSERVED_BY_LOCKBENCH_" + rand.Text() + "=1" // unique, since lockbench may run lockbench
	p := &child{cmd: cmd, mark: mark, exited: make(chan struct{})}
	cmd.Env = append(cmd.Env, p.mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() { // ends with the command, which kill ends
		runtime.LockOSThread() // for Pdeathsig, the parent is the thread that starts the command
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
		p.terminate() // the descendants in its process group
		for end := time.Now().Add(endPatience); driver.IsMarked(p.mark) && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		p.kill() // before Wait, because after it another process group may get this ID
		p.mu.Lock()
		p.reaped = true
		p.mu.Unlock()
		_ = cmd.Wait()
	}()
	return p, <-started
}

func (p *child) terminate() { p.signal(syscall.SIGTERM) }

// kill kills the command and its descendants.
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
