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

// Image names the possible images of a container, in order of preference.
type Image struct {
	Wanted   string // requested by the user; "" means any
	Variable string // environment variable that can request an image
	Default  string // pulled if no image is requested
	// Offline is the local name of an image for machines without access to a registry; "" means that there is none.
	Offline string
}

// imageAdvice returns the next steps for a user who requested a container for which no image can be obtained.
func (i Image) imageAdvice() string {
	ways := "name an image that Docker has in " + i.Variable + ", or start a process: --redis process"
	if i.Offline != "" {
		ways = "docker/setup.sh builds " + i.Offline + " from this machine's redis-server; otherwise " + ways
	}
	return ways
}

var (
	// ErrNoImage means that Docker has none of the possible images and cannot pull one.
	ErrNoImage = errors.New("no container image is available")
	// ErrNoEngine means that the program was built without a client for containers.
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
