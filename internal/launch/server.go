package launch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Definition describes how to start a server, as a process or in a container.
type Definition struct {
	Name  string // name of the program, used in messages, in the name of its directory, and to recognise its process
	Ports []int  // the ports on which it listens, the first for clients
	// Args returns the arguments of a process, or the program and its arguments in a container.
	Args func(at Location) []string
	// Ready waits until the server can serve clients. It returns an error if ctx is cancelled or the server ends first.
	Ready     func(ctx context.Context, s Starting) error
	Process   Program
	Container Container
}

// Location describes where a server listens and keeps its files, for the server's arguments.
type Location struct {
	Bind      string
	Port      int
	Dir       string // a process's working directory; "" in a container
	Image     string // of the container
	Published bool   // clients reach the server only through a published port
}

// Program describes a server that runs as a process.
type Program struct {
	Path string   // of the executable
	Env  []string // variables in addition to those of this process
	User string   // the user to run as if this process is root; "" means root
	// Prepare creates the files that the server needs in its directory before the first start; nil means none.
	Prepare func(ctx context.Context, p *Process) error
	// Empty removes the server's data from its directory after the server has ended. If Empty is nil, the data cannot be
	// removed.
	Empty func(ctx context.Context, p *Process) error
}

// Container describes a server that runs in a container.
type Container struct {
	Image string
	// Network is OnHost, OnPort or "", which means the faster of the two that works.
	Network string
	Inside  int // the port inside the container that is published
	// Files maps absolute paths to the contents of files that are written into the container before it starts.
	Files map[string]string
	// Empty maps the path of each data file, relative to the working directory, to the contents that replace the data.
	Empty map[string]string
	// Listens is a text that appears in the log when the server listens; "" if there is none.
	Listens string
	Logf    func(format string, args ...any) // nil means no reports
}

// The values of Container.Network: the host's network, or a network of the engine with a published port.
const (
	OnHost = "host"
	OnPort = "published port"
)

// Starting is a server that has been started but may not reply to clients yet.
type Starting interface {
	Addr() string                   // host:port, always the same
	Log(ctx context.Context) string // output since its last start
	Ended(ctx context.Context) bool
	Began() time.Time // time of the last start
}

// Started is a server that lockbench started, as a process or in a container, and may therefore kill, pause and empty.
// It is safe for concurrent use.
type Started interface {
	Starting
	Network() string // loopback, host or published port
	// PID is the server's process ID on this machine; 0 if not known.
	PID() int
	Kill(ctx context.Context) error // with SIGKILL; nil if the server has already ended
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
	Again(ctx context.Context) error // starts the ended server with its data
	Anew(ctx context.Context) error  // kills the server and starts it without data
	// CPU returns the CPU time in seconds of the server's processes since its first start, or nil if not known.
	CPU() *float64
	Close(ctx context.Context) error // kills the server and removes all its files
}

// Each calls do for all servers at the same time, and joins the errors.
func Each[S interface{ Addr() string }](ctx context.Context, servers []S, do func(S, context.Context) error) error {
	wrong := make([]error, len(servers))
	var all sync.WaitGroup
	for n, s := range servers {
		all.Go(func() {
			if err := do(s, ctx); err != nil {
				wrong[n] = fmt.Errorf("%s: %w", s.Addr(), err)
			}
		})
	}
	all.Wait()
	return errors.Join(wrong...)
}

// StartTimeout is the time limit for the start of a server. A start usually takes about two seconds, but it takes far
// longer on a very slow machine.
const StartTimeout = time.Minute

// Await calls ask every 5 ms until it succeeds, for at most StartTimeout. If the server ends first, Await returns an
// error with the text that the parameter said extracts from the server's log.
func Await(ctx context.Context, s Starting, said func(log string) string, ask func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask(ctx)
		switch {
		case s.Ended(ctx): // a reply, if any, came from another server
			return errors.New(said(s.Log(ctx)))
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("the server is not ready: %w: %w (%s)", context.Cause(ctx), err,
				said(s.Log(context.WithoutCancel(ctx))))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// LastLine returns the last line of a log, or a remark if the log is empty.
func LastLine(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last
	}
	return "the server printed nothing"
}
