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
	Name  string // of its program: for messages, for its directory, and to recognise its process
	Ports []int  // on which it listens, the first for clients
	// Args are its arguments; in a container, the program with its arguments.
	Args func(at Location) []string
	// Ready waits until it answers. It returns when ctx ends or the server has ended.
	Ready     func(ctx context.Context, s Starting) error
	Process   Program
	Container Container
}

// Location is where a server listens and keeps its files.
type Location struct {
	Bind      string
	Port      int
	Dir       string // a process's working directory; "" in a container
	Image     string // of the container
	Published bool   // the only access is through a published port
}

// Program describes the process of a server.
type Program struct {
	Path string   // of the executable
	Env  []string // in addition to this process's
	User string   // to run as if this process is root; "" means root
	// Prepare creates what it needs in its directory before the first start; nil means nothing.
	Prepare func(ctx context.Context, p *Process) error
	// Empty removes its data from its directory after it has ended; nil means that data cannot be
	// removed.
	Empty func(ctx context.Context, p *Process) error
}

// Container describes the container of a server.
type Container struct {
	Image string
	// Network is OnHost, OnPort or "", which means the faster one that works.
	Network string
	Inside  int // the port behind a published one
	// Files are written into the container before it starts: their contents, by absolute path.
	Files map[string]string
	// Empty is what replaces its data: files by their path in the working directory.
	Empty map[string]string
	// Listens is in its log once it listens; "" if there is no such text.
	Listens string
	Logf    func(format string, args ...any) // nil means no reports
}

// These are the networks of containers.
const (
	OnHost = "host"
	OnPort = "published port"
)

// Starting is a started server that may not answer yet.
type Starting interface {
	Addr() string                   // host:port, always the same
	Log(ctx context.Context) string // written since its last start
	Ended(ctx context.Context) bool
	Began() time.Time // time of the last start
}

// Started is a server that lockbench started, as a process or in a container, and may therefore kill,
// pause and empty. It is safe for concurrent use.
type Started interface {
	Starting
	Network() string // loopback, host or published port
	// PID is the server's process ID on this machine; 0 if not known.
	PID() int
	Kill(ctx context.Context) error // with SIGKILL; no error if it has ended already
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
	Again(ctx context.Context) error // starts the ended server with its data
	Anew(ctx context.Context) error  // kills it and starts it without data
	// CPU is the CPU time of its processes since its first start, in seconds; nil if not known.
	CPU() *float64
	Close(ctx context.Context) error // ends it and removes all its files
}

// Each calls do for all those servers at the same time, and joins the errors.
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

// StartTimeout bounds a start on a very slow machine; two seconds are usual.
const StartTimeout = time.Minute

// Await calls ask until it succeeds, for at most StartTimeout. If the server ends instead, the error
// is what said extracts from its log.
func Await(ctx context.Context, s Starting, said func(log string) string, ask func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask(ctx)
		switch {
		case s.Ended(ctx): // any answer came from another server
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

// LastLine returns the last line of a log.
func LastLine(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last
	}
	return "the server printed nothing"
}
