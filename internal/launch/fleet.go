package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// Fleet describes how to start the servers of a store. If the user requests containers or processes, Start tries only
// what was requested. If the user requests neither, Start tries containers first, provided that Image has a Default,
// and then processes.
type Fleet struct {
	Members int
	Linked  bool // the members must be able to reach each other
	// Ports finds free ports for one member. The first port is for clients.
	Ports func() ([]int, error)
	Taken string // a part of the error if the start failed because another process took a port
	Image Image  // of containers; without a Default no containers are used
	// Program returns the path of the server program for processes. Its error names the package to install.
	Program func() (path string, err error)
	// Server returns the definition of the member with the index place, without its Ports. ports holds the ports of every
	// member.
	Server func(place int, ports [][]int) Definition
}

// Request is a user's choice of how to start the servers.
type Request struct {
	Address string // container or process; any other address means the first way that works
	Image   string // for containers; "" means the default of Fleet.Image
	// Logf reports slow steps, such as the pull of an image; nil means no reports.
	Logf func(format string, args ...any)
}

// Way describes how the servers were started, in the words that the report prints.
type Way struct {
	Source  string // container or process
	Image   string // of containers
	Network string // host, published port or loopback
	Why     string
}

// Start removes what killed runs left on this machine, and then starts all members, in containers or as processes. If
// containers and processes both fail, the error wraps both errors.
func (f Fleet) Start(ctx context.Context, o Request) (Way, []Started, error) {
	Sweep(ctx).Log(o.Logf)
	f.Image.Wanted = cmp.Or(o.Image, os.Getenv(f.Image.Variable))
	l := launching{f, o}
	switch {
	case o.Address == "container":
		return l.inContainers(ctx, "a container was requested")
	case o.Address == "process":
		return l.asProcesses(ctx, "a local process was requested")
	case f.Image.Default == "":
		return l.asProcesses(ctx, "no address was given")
	}
	way, all, err := l.inContainers(ctx, "no address was given and Docker works")
	switch {
	case err == nil || ctx.Err() != nil:
		return way, all, err
	case l.Image.Wanted != "":
		return way, nil, fmt.Errorf("no container of the requested image %s could be started: %w", l.Image.Wanted,
			oneLine{err})
	}
	why := fmt.Sprintf("no address was given and no container could be started: %v", oneLine{err})
	way, all, then := l.asProcesses(ctx, why)
	if then != nil {
		return way, nil, fmt.Errorf("%w; %w", oneLine{err}, oneLine{then})
	}
	return way, all, nil
}

// launching is a Fleet together with the user's request.
type launching struct {
	Fleet
	asked Request
}

// inContainers starts all members in containers of the registered Engine. The parameter why is the report's reason for
// the use of containers.
func (l launching) inContainers(ctx context.Context, why string) (Way, []Started, error) {
	way := Way{Source: "container", Why: why}
	engine, err := OpenEngine(ctx)
	if err != nil {
		return way, nil, err
	}
	engine.Sweep(ctx).Log(l.asked.Logf)
	way.Image, err = engine.Obtain(ctx, l.Image, l.logf)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrNoImage, oneLine{err})
		if l.asked.Address == way.Source {
			err = fmt.Errorf("%w; %s", err, l.Image.imageAdvice())
		}
		return way, nil, err
	}
	return l.members(ctx, way, func(ctx context.Context, s Definition) (Started, error) {
		s.Container.Image, s.Container.Logf = way.Image, l.logf
		return engine.Run(ctx, s)
	})
}

// asProcesses starts all members as processes. The parameter why is the report's reason for the use of processes.
func (l launching) asProcesses(ctx context.Context, why string) (Way, []Started, error) {
	way := Way{Source: "process", Why: why}
	path, err := l.Program()
	if err != nil {
		return way, nil, err
	}
	return l.members(ctx, way, func(ctx context.Context, s Definition) (Started, error) {
		s.Process.Path = path
		p, err := Start(ctx, s)
		if err != nil {
			return nil, err
		}
		return p, nil
	})
}

func (l launching) logf(format string, args ...any) {
	if l.asked.Logf != nil {
		l.asked.Logf(format, args...)
	}
}

// begin starts one server, in a container or as a process.
type begin func(ctx context.Context, s Definition) (Started, error)

// members starts all members and returns way with their network added. If another process takes a member's port, it
// starts all members again on other ports. It makes at most five attempts.
func (l launching) members(ctx context.Context, way Way, begin begin) (Way, []Started, error) {
	const attempts = 5
	for attempt := 1; ; attempt++ {
		ports, err := l.pick()
		if err != nil {
			return way, nil, err
		}
		all, err := l.together(ctx, ports, begin)
		if err == nil {
			way.Network = all[0].Network()
		}
		if err == nil || attempt == attempts || ctx.Err() != nil || !strings.Contains(err.Error(), l.Taken) {
			return way, all, err
		}
	}
}

// pick chooses free ports for each member. No two members share a port.
func (l launching) pick() (all [][]int, err error) {
	used := map[int]bool{}
	for len(all) < l.Members {
		ports, err := l.Ports()
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(ports, func(port int) bool { return used[port] }) {
			continue
		}
		for _, port := range ports {
			used[port] = true
		}
		all = append(all, ports)
	}
	return all, nil
}

// together starts all members at the same time, because a member may become ready only when a majority runs. If a
// member fails, together closes the others.
func (l launching) together(ctx context.Context, ports [][]int, begin begin) ([]Started, error) {
	started, problems := make([]Started, l.Members), make([]error, l.Members)
	// If one member cannot start, the others must not wait for it.
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for place := range l.Members {
		all.Go(func() {
			s := l.Server(place, ports)
			s.Ports = ports[place]
			if l.Linked {
				s.Container.Network = OnHost
			}
			if started[place], problems[place] = begin(within, s); problems[place] != nil {
				cancel()
			}
		})
	}
	all.Wait()
	err := errors.Join(causes(ctx, problems)...)
	if err == nil {
		return started, nil
	}
	for place, one := range started {
		if problems[place] == nil {
			err = errors.Join(err, one.Close(context.WithoutCancel(ctx)))
		}
	}
	return nil, err
}

// causes omits the errors of servers whose start was cancelled because another server failed.
func causes(ctx context.Context, problems []error) []error {
	givenUp := func(err error) bool { return err == nil || errors.Is(err, context.Canceled) }
	if ctx.Err() != nil || !slices.ContainsFunc(problems, func(err error) bool { return !givenUp(err) }) {
		return problems
	}
	return slices.DeleteFunc(slices.Clone(problems), givenUp)
}

// oneLine wraps an error and replaces line breaks in its text with semicolons, so that it can be part of a longer
// sentence.
type oneLine struct{ error }

func (e oneLine) Error() string {
	return strings.Join(strings.FieldsFunc(e.error.Error(), func(r rune) bool { return r == '\n' }), "; ")
}

func (e oneLine) Unwrap() error { return e.error }
