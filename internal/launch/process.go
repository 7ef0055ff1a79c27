// Package launch starts servers of any store on this machine, as processes or in containers, and
// removes what a killed lockbench left of them.
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

// Program is a server to start as a process.
type Program struct {
	Name string // for messages and for its directory: redis-server
	Path string // of the executable
	// Known are other names that its process may have, so that a sweep finds it.
	Known []string
	// Args are its arguments.
	Args func(p *Process) []string
	Env  []string // in addition to this process's
	CPUs []int    // to run on; empty means any
	// User is the user to run as if this process is root; "" means root.
	User string
	// Prepare creates what it needs in its directory before the first start; nil means nothing.
	Prepare func(ctx context.Context, p *Process) error
	// Empty removes its data from its directory after it has ended; nil means that data cannot be
	// removed.
	Empty func(ctx context.Context, p *Process) error
	// Beside returns the further ports on which it listens; nil means none.
	Beside func(port int) []int
	// Ready waits until it answers. It returns when ctx ends or p has ended.
	Ready func(ctx context.Context, p *Process) error
	// Taken says whether a start failed because another process took the port.
	Taken func(err error) bool
}

// Process is a server that lockbench started on a free loopback port, with a temporary directory as
// its working directory. Its methods are safe for concurrent use.
type Process struct {
	program Program
	port    int
	kept    Kept   // until Close, also after Kill
	home    string // with what the server's user must not change
	dir     string // the working directory
	owner   owner

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{} // closed after cmd has been waited for

	used cpuTime
}

// dirPattern is the prefix of the temporary directories of Processes.
const dirPattern = "lockbench-server-"

const (
	ownerFile = "owner.json"
	logFile   = "server.log"
	workDir   = "work"
)

// Start starts a program on a port from pick and returns when it is ready. runID marks what belongs
// to the run. The error contains the end of the program's log.
func Start(ctx context.Context, program Program, pick Picker, runID string) (*Process, error) {
	home, err := os.MkdirTemp("", dirPattern+program.Name+"-*")
	if err != nil {
		return nil, fmt.Errorf("make a directory for %s: %w", program.Name, err)
	}
	p := &Process{program: program, home: home, dir: filepath.Join(home, workDir), owner: thisProcess(runID)}
	p.owner.Programs = append([]string{filepath.Base(program.Path)}, program.Known...)
	if err := p.startOnFreePort(ctx, pick); err != nil {
		return nil, errors.Join(err, p.remove())
	}
	return p, nil
}

func (p *Process) startOnFreePort(ctx context.Context, pick Picker) error {
	if err := p.note(); err != nil {
		return err
	}
	if err := p.furnish(); err != nil {
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

// furnish makes the working directory and gives it to the server's user.
func (p *Process) furnish() error {
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		return err
	}
	if err := handOver(p.dir, p.program.User); err != nil || p.program.User == "" {
		return err
	}
	return os.Chmod(p.home, 0o711) // to pass through
}

// note writes who owns the directory and, once it runs, which process is the server. Another
// lockbench reads either the old note or the new one.
func (p *Process) note() error {
	file := filepath.Join(p.home, ownerFile)
	text, err := json.Marshal(p.owner)
	if err == nil {
		err = os.WriteFile(file+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return fmt.Errorf("note the owner of %s: %w", p.program.Name, err)
	}
	return nil
}

// Again starts the ended server with the data in its directory, on the same port.
func (p *Process) Again(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(p.home, logFile), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.program.Name, err)
	}
	defer log.Close() // the child has its own descriptor
	cmd, err := p.Command(p.program.Path, p.program.Args(p)...)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.program.Name, err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.program.Name, err)
	}
	exited := make(chan struct{})
	go func() { // ends with the child, for which Kill waits
		defer close(exited)
		_ = cmd.Wait() // servers usually end by a kill
	}()
	p.mu.Lock()
	p.cmd, p.exited = cmd, exited
	p.owner.Server, p.owner.Since = cmd.Process.Pid, startTime(cmd.Process.Pid)
	p.mu.Unlock()
	if err = p.note(); err == nil {
		err = p.program.Ready(ctx, p)
	}
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

// Command returns a command that runs in the server's directory, with its environment and user.
func (p *Process) Command(path string, args ...string) (*exec.Cmd, error) {
	cmd := exec.Command(path, args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), p.program.Env...)
	return cmd, detach(cmd, p.program.User)
}

// Dir returns its working directory.
func (p *Process) Dir() string { return p.dir }

// File writes a file that the server's user alone can read, and cannot replace, and returns its path.
func (p *Process) File(name, contents string) (string, error) {
	file := filepath.Join(p.home, name)
	if err := os.WriteFile(file, []byte(contents), 0o600); err != nil {
		return "", err
	}
	return file, handOver(file, p.program.User)
}

// Port returns the server's port.
func (p *Process) Port() int { return p.port }

// Addr returns host:port.
func (p *Process) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }

// Network returns "loopback".
func (p *Process) Network() string { return "loopback" }

// PID returns the process ID of the last start.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// Log returns what the server has written since its last start.
func (p *Process) Log(context.Context) string {
	log, _ := os.ReadFile(filepath.Join(p.home, logFile))
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

// Kill ends the server and its children with SIGKILL and waits for their end. It is no error if they
// have ended already. All are stopped first: the processes of PostgreSQL would outlive their parent by
// moments, end in good order, and each give its locks to the next.
func (p *Process) Kill(ctx context.Context) error {
	p.mu.Lock()
	cmd, exited := p.cmd, p.exited
	p.mu.Unlock()
	if cmd == nil {
		return nil
	}
	var children []int
	if p.Pause(ctx) == nil { // else it has ended, and its PID may be another process's
		children = descendants(cmd.Process.Pid)
		p.used.read(cmd.Process.Pid, children) // notes it
	}
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.program.Name, err)
	}
	<-exited
	endAll(children)
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
		return fmt.Errorf("%s %s: %w", what, p.program.Name, err)
	}
	for _, pid := range descendants(p.cmd.Process.Pid) {
		if child, err := os.FindProcess(pid); err == nil {
			_ = send(child) // it may have ended meanwhile
		}
	}
	return nil
}

// CPU returns the CPU time of the server and its children, including ended ones, since its first
// start, in seconds; nil if not known.
func (p *Process) CPU() *float64 {
	if p.Ended(context.Background()) { // its PID may be another process's now
		return p.used.read(0, nil)
	}
	return p.used.read(p.PID(), descendants(p.PID()))
}

// Close kills the server and removes its directory.
func (p *Process) Close(ctx context.Context) error {
	return errors.Join(p.Kill(ctx), p.remove())
}

func (p *Process) remove() error {
	p.kept.Free()
	return os.RemoveAll(p.home)
}
