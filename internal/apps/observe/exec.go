package observe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
)

// Command reports which command --exec ran, and how it ended.
type Command struct {
	Line  string `json:"line"`  // the argument of sh -c
	Code  int    `json:"code"`  // its exit code; −1 if a signal ended it
	Ended string `json:"ended"` // its end as text, such as "exit status 1"
}

// Running specifies the command to run and the destination of its output.
type Running struct {
	Line           string // the argument of sh -c
	Stdout, Stderr io.Writer
	// Began, if not nil, is called as soon as the command runs. kill kills the command and its descendants.
	Began func(kill func())
}

// Exit codes of sh for a command that sh cannot run, and for a command that sh does not find.
const (
	notRun   = 126
	notFound = 127
)

// ErrNoCommand reports that sh does not find the command or cannot run it.
var ErrNoCommand = errors.New("sh cannot find or run the command")

// endPatience is the time that a command has to end after SIGTERM. It is short because a service manager may kill
// lockbench itself after 10 s.
const endPatience = 3 * time.Second

// Run starts a Redis, runs a command with the address of that Redis in REDIS_URL and LOCKBENCH_REDIS, and observes the
// Redis until the command ends. When ctx ends, it ends the command and returns the figures up to then. It leaves no
// process of the command running. A failed command is not an error; Document.Command contains its exit code.
func Run(ctx context.Context, running Running, options Options) (d *Document, err error) {
	how := servers.Options{RunID: store.NewRunID()}
	redis, err := servers.StartOwn(ctx, how) // without a password, because not every client accepts one in a URL
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, redis.Close(context.WithoutCancel(ctx))) }()
	how.Address = "redis://" + redis.Addr()
	m, err := servers.OpenMonitor(ctx, how)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	o := newObserver(options)
	o.keys.fresh = true
	c := newCapture(m, Live{held: mostOwn}, o)
	whole := context.WithoutCancel(ctx) // also after an interruption, the stream is read up to the mark
	var reading sync.WaitGroup
	reading.Go(func() { c.run(whole) })
	ended, err := run(ctx, running, how.Address)
	if marked := m.Mark(whole); marked != nil {
		c.end(marked.Error(), true)
	}
	reading.Wait()
	if err != nil {
		return nil, fmt.Errorf("--exec: %w", err)
	}
	d = c.document(options)
	d.Interrupted = ctx.Err() != nil
	d.Command = &Command{Line: running.Line, Code: ended.ExitCode(), Ended: ended.String()}
	if code := d.Command.Code; (code == notRun || code == notFound) && d.Capture.Commands == 0 {
		return nil, fmt.Errorf("--exec: %w (%s)", ErrNoCommand, ended)
	}
	return d, nil
}

// run starts a command and returns when the command has exited. When ctx ends, run terminates the command.
func run(ctx context.Context, running Running, address string) (*os.ProcessState, error) {
	cmd := exec.Command("sh", "-c", running.Line)
	cmd.Env = append(os.Environ(), "REDIS_URL="+address, "LOCKBENCH_REDIS="+address)
	cmd.Stdout, cmd.Stderr = running.Stdout, running.Stderr
	cmd.WaitDelay = endPatience // a descendant that is not found may keep the pipes open
	p, err := begin(cmd)
	if err != nil {
		return nil, err
	}
	if running.Began != nil {
		running.Began(p.kill)
	}
	select {
	case <-p.exited:
	case <-ctx.Done():
		p.terminate()
		select {
		case <-p.exited:
		case <-time.After(endPatience):
			p.kill()
			<-p.exited
		}
	}
	return cmd.ProcessState, nil
}
