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
	// InContainers starts all servers in containers of an image and returns their network. After
	// an error it has closed all of them.
	InContainers func(ctx context.Context, engine Engine, image string) (network string, err error)
	// AsProcesses starts all servers as processes. Its error says what to install.
	AsProcesses func(ctx context.Context) error
	Logf        func(format string, args ...any) // reports slow steps; nil means no reports
}

// Way says how the servers were started, in the words of reports.
type Way struct {
	Source  string // container or process
	Image   string // of containers
	Network string // host, published port or loopback
	Why     string
}

// Start starts the servers in the first way that works. Before that, it removes what dead runs left on
// this machine. The error wraps what the ways' own errors wrap.
func (w Ways) Start(ctx context.Context) (Way, error) {
	Sweep(ctx).Log(w.Logf)
	switch w.Asked {
	case "container":
		way, err := w.container(ctx)
		way.Why = "a container was asked for"
		return way, err
	case "process":
		way, err := w.process(ctx)
		way.Why = "a local process was asked for"
		return way, err
	}
	first, second := w.container, w.process
	if w.ProcessFirst && w.Image.Wanted == "" {
		first, second = second, first
	}
	way, err := first(ctx)
	switch {
	case err == nil && way.Source == "container":
		way.Why = "no address was given and Docker works"
		return way, nil
	case err == nil:
		way.Why = "no address was given, and a process is tried first"
		return way, nil
	case ctx.Err() != nil:
		return Way{}, err
	case w.Image.Wanted != "":
		return Way{}, fmt.Errorf("no container of the image asked for, %s: %w", w.Image.Wanted, oneLine{err})
	}
	way, then := second(ctx)
	if then != nil {
		return Way{}, fmt.Errorf("%w; %w", oneLine{err}, oneLine{then})
	}
	way.Why = fmt.Sprintf("no address was given and no %s could be had: %v", other(way.Source), oneLine{err})
	return way, nil
}

func other(source string) string {
	if source == "process" {
		return "container"
	}
	return "process"
}

func (w Ways) container(ctx context.Context) (Way, error) {
	engine, err := OpenEngine(ctx)
	if err != nil {
		return Way{}, err
	}
	engine.Sweep(ctx).Log(w.Logf)
	image, err := engine.Obtain(ctx, w.Image, w.logf)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrNoImage, oneLine{err})
		if w.Asked == "container" {
			err = fmt.Errorf("%w; %s", err, w.Image.waysOut())
		}
		return Way{}, err
	}
	network, err := w.InContainers(ctx, engine, image)
	return Way{Source: "container", Image: image, Network: network}, err
}

func (w Ways) process(ctx context.Context) (Way, error) {
	return Way{Source: "process", Network: "loopback"}, w.AsProcesses(ctx)
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
