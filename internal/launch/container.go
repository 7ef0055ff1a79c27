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

// Image describes which image to use for a container and where it comes from.
type Image struct {
	Wanted   string // requested by the user; "" means any
	Variable string // environment variable that can request an image
	Default  string // pulled if no image is requested
	// Offline is the local name of an image for machines without access to a registry; "" means that there is none.
	Offline string
}

// waysOut returns advice for a user that requests a container when there is no image for it.
func (i Image) waysOut() string {
	ways := "name an image that Docker has in " + i.Variable + ", or start a process: --redis process"
	if i.Offline != "" {
		ways = "docker/setup.sh builds " + i.Offline + " from this machine's redis-server; otherwise " + ways
	}
	return ways
}

var (
	// ErrNoImage reports that Docker has no image to run and that none can be pulled.
	ErrNoImage = errors.New("no image for a container")
	// ErrNoEngine reports that the program was built without a client for containers.
	ErrNoEngine = errors.New("this program was built without a Docker client: " +
		"import github.com/lockbench/lockbench/docker")
)

var engine struct {
	sync.RWMutex
	open func(context.Context) (Engine, error)
}

// UseEngine registers the function that opens an Engine. Call it in an init function. It panics on the second call.
func UseEngine(open func(context.Context) (Engine, error)) {
	engine.Lock()
	defer engine.Unlock()
	if engine.open != nil {
		panic("launch: there is a container engine already")
	}
	engine.open = open
}

// OpenEngine opens the registered Engine. If none is registered, the error is ErrNoEngine.
func OpenEngine(ctx context.Context) (Engine, error) {
	engine.RLock()
	open := engine.open
	engine.RUnlock()
	if open == nil {
		return nil, ErrNoEngine
	}
	return open(ctx)
}
