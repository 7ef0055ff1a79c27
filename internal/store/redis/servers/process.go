package servers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/replies"
)

// Process is a redis-server that lockbench started, see launch.Process.
type Process struct {
	*launch.Process
	password string
}

// startProcess starts the server that lookProgram finds, on a port from pick, and returns when it
// answers. args come after our own settings and override them. The error is exec.ErrNotFound if
// there is no such program, and otherwise contains the end of Redis's log.
func (o Options) startProcess(ctx context.Context, pick launch.Picker, cpus []int, args ...string) (*Process, error) {
	binary, err := lookProgram(o.Program)
	if err != nil {
		return nil, err
	}
	program := launch.Program{
		Name: "redis-server", Path: binary, Known: known, Env: o.Env, CPUs: cpus, Taken: portTaken, Beside: bus(args),
		Args: func(p *launch.Process) []string { return append(settings("127.0.0.1", p.Port()), args...) },
		Ready: func(ctx context.Context, p *launch.Process) error {
			return awaitReady(ctx, p, o.password, isProcess(p))
		},
	}
	if o.password != "" {
		program.Prepare = func(_ context.Context, p *launch.Process) error {
			_, err := p.File(secrets, secretSettings(o.password))
			return err
		}
		args = append([]string{"--include", filepath.Join("..", secrets)}, args...)
	}
	p, err := launch.Start(ctx, program, pick, o.RunID)
	if err != nil {
		return nil, err
	}
	return &Process{p, o.password}, nil
}

// isProcess returns a check, by process ID, that an INFO is from this server.
func isProcess(p *launch.Process) func(replies.Info) bool {
	return func(fields replies.Info) bool { return fields["process_id"] == strconv.Itoa(p.PID()) }
}

// Save writes a snapshot into the directory of redis-server.
func (p *Process) Save(ctx context.Context) error { return save(ctx, p.Addr(), p.password) }

// Restart kills redis-server and starts it again, empty and on the same port.
func (p *Process) Restart(ctx context.Context) error {
	if err := p.Kill(ctx); err != nil {
		return err
	}
	for _, data := range []string{snapshot, "appendonlydir", "appendonly.aof"} {
		if err := os.RemoveAll(filepath.Join(p.Dir(), data)); err != nil {
			return fmt.Errorf("remove the data of redis-server: %w", err)
		}
	}
	return p.Again(ctx)
}

// RestartWithData kills redis-server and starts it again with the data in its directory.
func (p *Process) RestartWithData(ctx context.Context) error {
	if err := p.Kill(ctx); err != nil {
		return err
	}
	return p.Again(ctx)
}
