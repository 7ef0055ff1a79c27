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

// Command is what was run to see its locks.
type Command struct {
	Line  string `json:"line"` // for sh
	Code  int    `json:"code"` // its exit code; −1 if a signal ended it
	Ended string `json:"ended"`
}

// Running is what a command shares with this process.
type Running struct {
	Line           string // for sh -c
	Stdout, Stderr io.Writer
	// Began gets a function that kills the command and all that it has started, at once; it may be nil.
	Began func(kill func())
}

// Codes of sh for a command that it cannot run, and does not find.
const (
	notRun   = 126
	notFound = 127
)

// ErrNoCommand says that sh does not find the command, or cannot run it.
var ErrNoCommand = errors.New("sh cannot find or run the command")

// endPatience is how long a command may take to end after SIGTERM. A service manager waits for 10 s in all.
const endPatience = 3 * time.Second

// Run runs a command with the address of a Redis of its own in REDIS_URL and LOCKBENCH_REDIS, and observes that Redis
// until the command has ended. When ctx ends, it ends the command and returns what it has seen until then. Nothing that
// the command has started is left running. A command that fails is no error: Document.Command says it.
func Run(ctx context.Context, running Running, options Options) (d *Document, err error) {
	how := servers.Options{RunID: store.NewRunID()}
	redis, err := servers.StartOwn(ctx, how) // without a password, which not every client reads out of a URL
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
	whole := context.WithoutCancel(ctx) // its end is read also after an interruption
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

// run runs a command to its end, and ends it when ctx ends.
func run(ctx context.Context, running Running, address string) (*os.ProcessState, error) {
	cmd := exec.Command("sh", "-c", running.Line)
	cmd.Env = append(os.Environ(), "REDIS_URL="+address, "LOCKBENCH_REDIS="+address)
	cmd.Stdout, cmd.Stderr = running.Stdout, running.Stderr
	cmd.WaitDelay = endPatience // a program that this one does not know may have the pipes
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
