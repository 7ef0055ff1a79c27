package launch

import (
	"context"
	"fmt"
	"strings"
)

// Ways says how the servers of a store can be started. The rule is the same for all stores: in a
// container if an Engine answers, else as a process; with ProcessFirst the other way round; and
// only the requested way if there is one.
type Ways struct {
	Asked        string // container or process; "" and auto mean any
	Image        Image  // a requested image must be used
	ProcessFirst bool
	// Program finds the program of processes. Its error says what to install.
	Program func() (path string, err error)
	// Start starts all servers with begin. After an error it has closed all of them.
	Start func(ctx context.Context, begin Begin) ([]Started, error)
	Logf  func(format string, args ...any) // reports slow steps; nil means no reports
}

// Begin starts a server in the chosen way.
type Begin = func(ctx context.Context, s Server) (Started, error)

// Way says how the servers were started, in the words of reports.
type Way struct {
	Source  string // container or process
	Image   string // of containers
	Network string // host, published port or loopback
	Why     string
}

// Run starts the servers in the first way that works. Before that, it removes what dead runs left on
// this machine. The error wraps what the ways' own errors wrap.
func (w Ways) Run(ctx context.Context) (Way, []Started, error) {
	Sweep(ctx).Log(w.Logf)
	switch w.Asked {
	case "container":
		way, all, err := w.container(ctx)
		way.Why = "a container was asked for"
		return way, all, err
	case "process":
		way, all, err := w.process(ctx)
		way.Why = "a local process was asked for"
		return way, all, err
	}
	first, second := w.container, w.process
	if w.ProcessFirst && w.Image.Wanted == "" {
		first, second = second, first
	}
	way, all, err := first(ctx)
	switch {
	case err == nil && way.Source == "container":
		way.Why = "no address was given and Docker works"
		return way, all, nil
	case err == nil:
		way.Why = "no address was given, and a process is tried first"
		return way, all, nil
	case ctx.Err() != nil:
		return Way{}, nil, err
	case w.Image.Wanted != "":
		return Way{}, nil, fmt.Errorf("no container of the image asked for, %s: %w", w.Image.Wanted, oneLine{err})
	}
	way, all, then := second(ctx)
	if then != nil {
		return Way{}, nil, fmt.Errorf("%w; %w", oneLine{err}, oneLine{then})
	}
	way.Why = fmt.Sprintf("no address was given and no %s could be had: %v", other(way.Source), oneLine{err})
	return way, all, nil
}

func other(source string) string {
	if source == "process" {
		return "container"
	}
	return "process"
}

func (w Ways) container(ctx context.Context) (Way, []Started, error) {
	engine, err := OpenEngine(ctx)
	if err != nil {
		return Way{}, nil, err
	}
	engine.Sweep(ctx).Log(w.Logf)
	image, err := engine.Obtain(ctx, w.Image, w.logf)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrNoImage, oneLine{err})
		if w.Asked == "container" {
			err = fmt.Errorf("%w; %s", err, w.Image.waysOut())
		}
		return Way{}, nil, err
	}
	return w.started(ctx, Way{Source: "container", Image: image}, func(ctx context.Context, s Server) (Started, error) {
		s.Container.Logf = w.Logf
		return InContainer(ctx, engine, image, s)
	})
}

func (w Ways) process(ctx context.Context) (Way, []Started, error) {
	path, err := w.Program()
	if err != nil {
		return Way{}, nil, err
	}
	return w.started(ctx, Way{Source: "process"}, func(ctx context.Context, s Server) (Started, error) {
		s.Process.Path = path
		p, err := Start(ctx, s)
		if err != nil {
			return nil, err
		}
		return p, nil
	})
}

// started completes a way by the network of its servers.
func (w Ways) started(ctx context.Context, way Way, begin Begin) (Way, []Started, error) {
	all, err := w.Start(ctx, begin)
	if err != nil {
		return Way{}, nil, err
	}
	way.Network = all[0].Network()
	return way, all, nil
}

func (w Ways) logf(format string, args ...any) {
	if w.Logf != nil {
		w.Logf(format, args...)
	}
}

// oneLine writes an error of several lines on one line.
type oneLine struct{ error }

func (e oneLine) Error() string {
	return strings.Join(strings.FieldsFunc(e.error.Error(), func(r rune) bool { return r == '\n' }), "; ")
}

func (e oneLine) Unwrap() error { return e.error }
