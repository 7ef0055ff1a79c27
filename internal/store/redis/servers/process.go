package servers

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

	"github.com/lockbench/lockbench/internal/replies"
)

// Process is a redis-server of our own on a free loopback port, with a
// temporary directory as its working directory. Its methods are safe for
// concurrent use.
type Process struct {
	binary string
	port   int
	dir    string
	args   []string // beside settings
	env    []string // beside this process's
	cpus   []int    // to run on; empty is any

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{} // closed once cmd has been waited for
}

// dirPattern is how the temporary directories of Processes are called.
const dirPattern = "lockbench-redis-*"

const (
	ownerFile = "owner.json"
	logFile   = "redis.log"
)

// startProcess starts the server that lookProgram finds and returns once it
// answers. args follow our own settings and so win over them. The error is
// exec.ErrNotFound where there is no such binary, and otherwise carries Redis's
// own last words.
func startProcess(ctx context.Context, runID string, cpus []int, args ...string) (*Process, error) {
	return startProcessOn(ctx, freePort, runID, cpus, args...)
}

// startProcessOn takes the port that pick finds.
func startProcessOn(ctx context.Context, pick picker, runID string, cpus []int, args ...string) (*Process, error) {
	p := &Process{args: args, cpus: cpus}
	if err := p.open(ctx, pick, runID); err != nil {
		return nil, err
	}
	return p, nil
}

// open finds the binary, makes the directory and starts it.
func (p *Process) open(ctx context.Context, pick picker, runID string) (err error) {
	if p.binary, err = lookProgram(); err != nil {
		return err
	}
	if p.dir, err = os.MkdirTemp("", dirPattern); err != nil {
		return fmt.Errorf("make a directory for redis-server: %w", err)
	}
	if err := p.startOnFreePort(ctx, pick, runID); err != nil {
		return errors.Join(err, os.RemoveAll(p.dir))
	}
	return nil
}

func (p *Process) startOnFreePort(ctx context.Context, pick picker, runID string) error {
	who, err := json.Marshal(thisProcess(runID))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(p.dir, ownerFile), who, 0o600); err != nil {
		return fmt.Errorf("note the owner of redis-server: %w", err)
	}
	return onFreePort(pick, func(port int) error {
		p.port = port
		return p.start(ctx)
	})
}

// start runs redis-server and waits until it answers.
func (p *Process) start(ctx context.Context) error {
	log, err := os.Create(filepath.Join(p.dir, logFile))
	if err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	defer log.Close() // the child has its own
	cmd := exec.Command(p.binary, append(settings("127.0.0.1", p.port), p.args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	cmd.Env = append(os.Environ(), p.env...)
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	exited := make(chan struct{})
	go func() { // ends with the child; Kill waits for it
		defer close(exited)
		_ = cmd.Wait() // killed is how ours end
	}()
	p.mu.Lock()
	p.cmd, p.exited = cmd, exited
	p.mu.Unlock()
	err = awaitReady(ctx, p.Addr(), p)
	if err == nil && len(p.cpus) > 0 {
		err = setAffinity(cmd.Process.Pid, p.cpus)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("start redis-server: %w", err), p.Kill(ctx))
	}
	return nil
}

func (p *Process) log(context.Context) string {
	log, _ := os.ReadFile(filepath.Join(p.dir, logFile))
	return string(log)
}

// is knows its server by the process id that it tells.
func (p *Process) is(fields replies.Info) bool { return fields["process_id"] == strconv.Itoa(p.PID()) }

func (p *Process) ended(context.Context) bool {
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

// Addr is host:port.
func (p *Process) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }

// PID is that of redis-server.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// Kill ends redis-server with SIGKILL and waits until it is gone. It is no
// error when it was already.
func (p *Process) Kill(context.Context) error {
	p.mu.Lock()
	cmd, exited := p.cmd, p.exited
	p.mu.Unlock()
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill redis-server: %w", err)
	}
	<-exited
	return nil
}

// Pause stops redis-server with SIGSTOP.
func (p *Process) Pause(context.Context) error { return p.signal("pause", pause) }

// Resume lets a paused redis-server go on.
func (p *Process) Resume(context.Context) error { return p.signal("resume", resume) }

func (p *Process) signal(what string, send func(*os.Process) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := send(p.cmd.Process); err != nil {
		return fmt.Errorf("%s redis-server: %w", what, err)
	}
	return nil
}

// Save writes a snapshot into the directory of redis-server.
func (p *Process) Save(ctx context.Context) error { return save(ctx, p.Addr()) }

// Restart kills redis-server and starts it again, empty and on the same port.
func (p *Process) Restart(ctx context.Context) error {
	if err := p.Kill(ctx); err != nil {
		return err
	}
	for _, data := range []string{snapshot, "appendonlydir", "appendonly.aof"} {
		if err := os.RemoveAll(filepath.Join(p.dir, data)); err != nil {
			return fmt.Errorf("remove the data of redis-server: %w", err)
		}
	}
	return p.start(ctx)
}

// RestartWithData kills redis-server and starts it again with what its directory
// holds.
func (p *Process) RestartWithData(ctx context.Context) error {
	if err := p.Kill(ctx); err != nil {
		return err
	}
	return p.start(ctx)
}

// Close kills redis-server and removes its directory.
func (p *Process) Close(ctx context.Context) error {
	return errors.Join(p.Kill(ctx), os.RemoveAll(p.dir))
}
