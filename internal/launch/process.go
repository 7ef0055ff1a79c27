// Package launch starts servers of any store on this machine, as processes or in containers, and removes their
// leftovers after lockbench was killed.
package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// Process is a server that lockbench started as a process, on free loopback ports and with a temporary working
// directory. It implements Started. Its methods are safe for concurrent use.
type Process struct {
	of   Definition
	kept Kept   // reserves its ports until Close, also after Kill
	home Home   // holds files that the server's user must not change
	dir  string // the working directory

	mu     sync.Mutex
	cmd    *exec.Cmd
	began  time.Time
	exited chan struct{} // closed after cmd has been waited for

	used CPUTime
}

const (
	logFile = "server.log"
	workDir = "work"
)

// Start starts a server as a process, and returns when it is ready. The error contains the server's last message.
func Start(ctx context.Context, of Definition) (*Process, error) {
	home, err := newHome(homeOfProcess + of.Name + "-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for %s: %w", of.Name, err)
	}
	p := &Process{of: of, kept: Keep(of.Ports), home: home, dir: filepath.Join(home.Dir, workDir)}
	err = p.prepare(ctx)
	if err == nil {
		err = p.Again(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, p.remove())
	}
	return p, nil
}

// prepare creates the files that the server needs before its first start.
func (p *Process) prepare(ctx context.Context) error {
	err := p.furnish()
	if err == nil && p.of.Process.Prepare != nil {
		err = p.of.Process.Prepare(ctx, p)
	}
	if err != nil {
		return fmt.Errorf("prepare %s: %w", p.of.Name, err)
	}
	return nil
}

// furnish creates the working directory and makes the server's user its owner.
func (p *Process) furnish() error {
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		return err
	}
	if err := handOver(p.dir, p.of.Process.User); err != nil || p.of.Process.User == "" {
		return err
	}
	return os.Chmod(p.home.Dir, 0o711) // the server's user must be able to enter the working directory
}

// Again restarts the server, which has ended, with the data in its directory and on the same port.
func (p *Process) Again(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(p.home.Dir, logFile), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.of.Name, err)
	}
	defer log.Close() // the child has its own descriptor
	cmd, err := p.Command(p.of.Process.Path, p.of.Args(p.Place())...)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.of.Name, err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	exited, err := startBound(cmd)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.of.Name, err)
	}
	p.mu.Lock()
	p.cmd, p.exited, p.began = cmd, exited, time.Now()
	p.mu.Unlock()
	err = p.of.Ready(ctx, p)
	if err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", p.of.Name, err), p.Kill(ctx))
	}
	return nil
}

// startBound starts a child that the kernel kills if this process ends first. It returns a channel that is closed when
// the child has ended. On Linux the kernel kills the child when the thread that started it ends, so a goroutine stays
// locked to that thread.
func startBound(cmd *exec.Cmd) (exited chan struct{}, err error) {
	exited = make(chan struct{})
	started := make(chan error)
	bind(cmd)
	go func() { // ends with the child, for which Kill waits
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(exited)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // servers usually end by a kill, so the error means nothing
		}
	}()
	return exited, <-started
}

// Anew kills the server and starts it without its data, on the same port.
func (p *Process) Anew(ctx context.Context) error {
	if err := p.Kill(ctx); err != nil {
		return err
	}
	if p.of.Process.Empty == nil {
		return fmt.Errorf("remove the data of %s: %w", p.of.Name, errors.ErrUnsupported)
	}
	if err := p.of.Process.Empty(ctx, p); err != nil {
		return fmt.Errorf("remove the data of %s: %w", p.of.Name, err)
	}
	return p.Again(ctx)
}

// Command returns a command that runs in the server's directory, with its environment and user.
func (p *Process) Command(path string, args ...string) (*exec.Cmd, error) {
	cmd := exec.Command(path, args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), p.of.Process.Env...)
	return cmd, detach(cmd, p.of.Process.User)
}

// Dir returns the path of the server's working directory.
func (p *Process) Dir() string { return p.dir }

// File writes a file outside the working directory and returns its path. Only the server's user can read the file, and
// this user cannot replace it.
func (p *Process) File(name, contents string) (string, error) {
	file := filepath.Join(p.home.Dir, name)
	if err := os.WriteFile(file, []byte(contents), 0o600); err != nil {
		return "", err
	}
	return file, handOver(file, p.of.Process.User)
}

// Place returns the address and the directory that the definition of the server uses.
func (p *Process) Place() Location {
	return Location{Bind: "127.0.0.1", Port: p.of.Ports[0], Dir: p.dir}
}

// Addr returns the address for clients as host:port.
func (p *Process) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.of.Ports[0])) }

// Network returns "loopback", because every Process listens only on the loopback interface.
func (p *Process) Network() string { return "loopback" }

// Began returns the time of the last start.
func (p *Process) Began() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.began
}

// PID returns the process ID that the server got at its last start.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// Log returns the server's output since its last start.
func (p *Process) Log(context.Context) string {
	log, _ := os.ReadFile(filepath.Join(p.home.Dir, logFile))
	return string(log)
}

// Ended reports whether the server has ended.
func (p *Process) Ended(context.Context) bool {
	p.mu.Lock()
	exited := p.exited
	p.mu.Unlock()
	select {
	case <-exited:
		return true
	default:
		return false
	}
}

// Kill ends the server and its children with SIGKILL and waits until they have exited. It returns nil if they had
// exited before. It stops the parent while it kills the children, because PostgreSQL's processes shut down in an
// orderly way if they see their parent end, and then pass their locks on to waiters. Stopping only the children would
// not suffice, because the threads of a process continue until the thread that received SIGSTOP is scheduled.
func (p *Process) Kill(ctx context.Context) error {
	p.mu.Lock()
	cmd, exited := p.cmd, p.exited
	p.mu.Unlock()
	if cmd == nil {
		return nil
	}
	if p.Pause(ctx) == nil { // otherwise it has ended, and another process may have its PID
		children := descendants(cmd.Process.Pid)
		p.used.Read(cmd.Process.Pid) // records the CPU time
		endAll(children)
	}
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.of.Name, err)
	}
	<-exited
	return nil
}

// Pause stops the server and its children with SIGSTOP.
func (p *Process) Pause(context.Context) error { return p.signal("pause", pause) }

// Resume continues a paused server.
func (p *Process) Resume(context.Context) error { return p.signal("resume", resume) }

func (p *Process) signal(what string, send func(*os.Process) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := send(p.cmd.Process); err != nil {
		return fmt.Errorf("%s %s: %w", what, p.of.Name, err)
	}
	for _, pid := range descendants(p.cmd.Process.Pid) {
		if child, err := os.FindProcess(pid); err == nil {
			_ = send(child) // the child may have ended
		}
	}
	return nil
}

// CPU returns the CPU time in seconds of the server and its children since its first start, including processes that
// have ended. It returns nil if the CPU time is not known.
func (p *Process) CPU() *float64 {
	if p.Ended(context.Background()) { // its PID may now belong to another process
		return p.used.Read(0)
	}
	return p.used.Read(p.PID())
}

// Close kills the server and removes its directory.
func (p *Process) Close(ctx context.Context) error {
	return errors.Join(p.Kill(ctx), p.remove())
}

func (p *Process) remove() error {
	p.kept.Free()
	return p.home.Remove()
}
