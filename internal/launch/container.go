package launch

import (
	"context"
	"errors"
	"sync"
)

// Engine runs servers in containers.
type Engine interface {
	// Obtain finds or pulls an image and returns its name. logf reports slow steps.
	Obtain(ctx context.Context, image Image, logf func(format string, args ...any)) (string, error)
	// Run starts a server in a container, and returns when it is ready.
	Run(ctx context.Context, s Definition) (Started, error)
	// Sweep removes the containers of killed lockbench processes.
	Sweep(ctx context.Context) Swept
}

// Image describes how to get the image of a container.
type Image struct {
	Wanted   string // requested; "" means any
	Variable string // environment variable that can request one
	Default  string // pulled if none is requested
	// Offline is the local name of an image for machines without a registry; "" means there is none.
	Offline string
}

// waysOut is the advice for a user that requests a container without an image.
func (i Image) waysOut() string {
	ways := "name an image that Docker has in " + i.Variable + ", or start a process: --redis process"
	if i.Offline != "" {
		ways = "docker/setup.sh builds " + i.Offline + " out of this machine's redis-server; else " + ways
	}
	return ways
}

var (
	// ErrNoImage reports that there is no image to run, and that none can be pulled.
	ErrNoImage = errors.New("no image for a container")
	// ErrNoEngine reports that the program was built without a client for containers.
	ErrNoEngine = errors.New("this program was built without a Docker client: " +
		"import github.com/lockbench/lockbench/docker")
)

var engine struct {
	sync.RWMutex
	open func(context.Context) (Engine, error)
}

// UseEngine registers the function that opens an Engine. Call it in an init function; it panics the
// second time.
func UseEngine(open func(context.Context) (Engine, error)) {
	engine.Lock()
	defer engine.Unlock()
	if engine.open != nil {
		panic("launch: there is a container engine already")
	}
	engine.open = open
}

// OpenEngine opens the registered Engine; without one the error is ErrNoEngine.
func OpenEngine(ctx context.Context) (Engine, error) {
	engine.RLock()
	open := engine.open
	engine.RUnlock()
	if open == nil {
		return nil, ErrNoEngine
	}
	return open(ctx)
}
