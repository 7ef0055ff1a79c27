// Package launch starts servers of any store on this machine, in processes of their own or
// in containers, and removes what a lockbench that was killed left of them.
package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
)

// Program is a server to be started as a process.
type Program struct {
	Name string // for people, and for its directory: redis-server
	Path string // of the executable
	// Known are other names that it may run under, so that a sweep finds it.
	Known []string
	// Args are its arguments.
	Args func(p *Process) []string
	Env  []string // beside this process's
	CPUs []int    // to run on; empty is any
	// User is who it runs as where this process is root; "" is root too.
	User string
	// Prepare makes what it needs in its directory, before the first start; nil is nothing.
	Prepare func(ctx context.Context, p *Process) error
	// Empty removes its data from its directory, when it has ended; nil is a program whose
	// data are not removed.
	Empty func(ctx context.Context, p *Process) error
	// Beside are the ports that it listens on beside its own; nil is none.
	Beside func(port int) []int
	// Ready waits until it answers. It ends with the context, and when p has ended.
	Ready func(ctx context.Context, p *Process) error
	// Taken says whether a start failed because somebody else took the port.
	Taken func(err error) bool
}

// Process is a server of our own on a free loopback port, with a temporary directory as
// its working directory. Its methods are safe for concurrent use.
type Process struct {
	program Program
	port    int
	kept    Kept // while it exists, also when it was killed
	dir     string

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{} // closed once cmd has been waited for
}

// dirPattern is how the temporary directories of Processes begin.
const dirPattern = "lockbench-server-"

const (
	ownerFile = "owner.json"
	logFile   = "server.log"
)

// Start starts a program on a port that pick finds, and returns once it is ready. runID
// marks what belongs to the run. The error carries the program's own last words.
func Start(ctx context.Context, program Program, pick Picker, runID string) (*Process, error) {
	dir, err := os.MkdirTemp("", dirPattern+program.Name+"-*")
	if err != nil {
		return nil, fmt.Errorf("make a directory for %s: %w", program.Name, err)
	}
	p := &Process{program: program, dir: dir}
	if err := p.startOnFreePort(ctx, pick, runID); err != nil {
		return nil, errors.Join(err, p.remove())
	}
	return p, nil
}

func (p *Process) startOnFreePort(ctx context.Context, pick Picker, runID string) error {
	who := thisProcess(runID)
	who.Programs = append([]string{filepath.Base(p.program.Path)}, p.program.Known...)
	note, err := json.Marshal(who)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(p.dir, ownerFile), note, 0o600); err != nil {
		return fmt.Errorf("note the owner of %s: %w", p.program.Name, err)
	}
	if err := handOver(p.dir, p.program.User); err != nil {
		return fmt.Errorf("give %s its directory: %w", p.program.Name, err)
	}
	return OnFreePort(pick, p.program.Taken, func(port int) error {
		p.port = port
		p.kept.Keep(port, p.program.Beside)
		if p.program.Prepare != nil {
			if err := p.program.Prepare(ctx, p); err != nil {
				return fmt.Errorf("prepare %s: %w", p.program.Name, err)
			}
		}
		return p.Again(ctx)
	})
}

// Again starts the server anew, with what its directory holds, on the same port. It must
// have ended.
func (p *Process) Again(ctx context.Context) error {
	log, err := os.Create(filepath.Join(p.dir, logFile))
	if err != nil {
		return fmt.Errorf("start %s: %w", p.program.Name, err)
	}
	defer log.Close() // the child has its own
	cmd, err := p.Command(p.program.Path, p.program.Args(p)...)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.program.Name, err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.program.Name, err)
	}
	exited := make(chan struct{})
	go func() { // ends with the child; Kill waits for it
		defer close(exited)
		_ = cmd.Wait() // killed is how ours end
	}()
	p.mu.Lock()
	p.cmd, p.exited = cmd, exited
	p.mu.Unlock()
	err = p.program.Ready(ctx, p)
	if err == nil && len(p.program.CPUs) > 0 {
		err = SetAffinity(cmd.Process.Pid, p.program.CPUs)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", p.program.Name, err), p.Kill(ctx))
	}
	return nil
}

// Anew kills the server and starts it without its data, on the same port.
func (p *Process) Anew(ctx context.Context) error {
	if err := p.Kill(ctx); err != nil {
		return err
	}
	if p.program.Empty == nil {
		return fmt.Errorf("remove the data of %s: %w", p.program.Name, errors.ErrUnsupported)
	}
	if err := p.program.Empty(ctx, p); err != nil {
		return fmt.Errorf("remove the data of %s: %w", p.program.Name, err)
	}
	return p.Again(ctx)
}

// Command is a program to be run in the server's directory, in its environment and as
// its user.
func (p *Process) Command(path string, args ...string) (*exec.Cmd, error) {
	cmd := exec.Command(path, args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), p.program.Env...)
	return cmd, detach(cmd, p.program.User)
}

// Dir is its working directory.
func (p *Process) Dir() string { return p.dir }

// Port is the one it was given.
func (p *Process) Port() int { return p.port }

// Addr is host:port.
func (p *Process) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }

// Network is that of processes of this machine.
func (p *Process) Network() string { return "loopback" }

// PID is the server's, of its last start.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// Log is what the server has said since its last start.
func (p *Process) Log(context.Context) string {
	log, _ := os.ReadFile(filepath.Join(p.dir, logFile))
	return string(log)
}

// Ended says whether the server has ended.
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

// Kill ends the server and its children with SIGKILL and waits until it is gone. It is
// no error when it was already.
func (p *Process) Kill(context.Context) error {
	p.mu.Lock()
	cmd, exited := p.cmd, p.exited
	p.mu.Unlock()
	if cmd == nil {
		return nil
	}
	children := descendants(cmd.Process.Pid)
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.program.Name, err)
	}
	<-exited
	endAll(children)
	return nil
}

// Pause stops the server and its children with SIGSTOP.
func (p *Process) Pause(context.Context) error { return p.signal("pause", pause) }

// Resume lets a paused server go on.
func (p *Process) Resume(context.Context) error { return p.signal("resume", resume) }

func (p *Process) signal(what string, send func(*os.Process) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := send(p.cmd.Process); err != nil {
		return fmt.Errorf("%s %s: %w", what, p.program.Name, err)
	}
	for _, pid := range descendants(p.cmd.Process.Pid) {
		if child, err := os.FindProcess(pid); err == nil {
			_ = send(child) // it may have ended meanwhile
		}
	}
	return nil
}

// CPU is the processor time that the server and its children have used since its last
// start, ended children too, in seconds; nil where the system does not tell.
func (p *Process) CPU() *float64 { return cpuOf(p.PID()) }

// Close kills the server and removes its directory.
func (p *Process) Close(ctx context.Context) error {
	return errors.Join(p.Kill(ctx), p.remove())
}

func (p *Process) remove() error {
	p.kept.Free()
	return os.RemoveAll(p.dir)
}
