package launch

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Engine runs servers in containers.
type Engine interface {
	// Obtain finds or pulls an image and returns its name. logf reports slow steps.
	Obtain(ctx context.Context, image Image, logf func(format string, args ...any)) (string, error)
	// Run starts a container and returns once its server is ready.
	Run(ctx context.Context, c Container) (Contained, error)
	// Sweep removes the containers of killed lockbench processes.
	Sweep(ctx context.Context) Swept
}

// Image says how to get the image of a container.
type Image struct {
	Wanted   string // requested; "" means any
	Variable string // environment variable that can request one
	Default  string // pulled if none is requested
	// Offline is the local name of an image for machines without a registry; "" means there is none.
	Offline string
}

// waysOut advises whoever asked for a container and has no image for it.
func (i Image) waysOut() string {
	ways := "name an image that Docker has in " + i.Variable + ", or start a process: --redis process"
	if i.Offline != "" {
		ways = "docker/setup.sh builds " + i.Offline + " out of this machine's redis-server; else " + ways
	}
	return ways
}

// Container is a server to start in a container.
type Container struct {
	Image string
	RunID string // marks what belongs to the run
	// Network is "host", "published port" or "", which means the faster one that works.
	Network string
	Pick    Picker
	CPUs    []int // to run on; empty means any
	// Entrypoint is the program that gets Command as arguments; empty means the image's own.
	Entrypoint []string
	User       string            // to run as; "" means the image's own
	Env        map[string]string // in addition to the image's own
	// Files are written into the container before it starts: their contents, by absolute path. port
	// is the server's.
	Files func(port int) map[string]string
	// Command is the program with its arguments, listening on bind and port. published says that
	// the only access is through a published port.
	Command func(bind string, port int, published bool) []string
	Inside  int // the port behind a published one
	// Beside is as in Program. Without the host's network it is not needed.
	Beside func(port int) []int
	// Ready waits until the server answers; its error is ErrOutOfReach if it runs and does not.
	Ready func(ctx context.Context, c Contained) error
	Taken func(err error) bool // as in Program
	Logf  func(format string, args ...any)
}

// Contained is a server in a container. Its methods are safe for concurrent use.
type Contained interface {
	Addr() string    // host:port, the same after Again
	Network() string // host or published port
	// PID is the engine's number of the server's process, 0 if not known. It may be a number on
	// another machine.
	PID(ctx context.Context) int
	Started() time.Time // time of the last start
	Log(ctx context.Context) string
	Ended(ctx context.Context) bool
	// Kill ends the server with SIGKILL. It is no error if the server has ended already.
	Kill(ctx context.Context) error
	Pause(ctx context.Context) error // stops all its processes
	Resume(ctx context.Context) error
	// Put replaces a file in the working directory of the ended server.
	Put(ctx context.Context, name string, contents []byte) error
	Again(ctx context.Context) error // starts the ended server
	// Close removes the container. It also works with a context that has ended.
	Close(ctx context.Context) error
}

// ErrOutOfReach says that a server runs but cannot be reached from here.
var ErrOutOfReach = errors.New("it runs but does not answer at its address")

// ErrNoImage says that there is no image to run, and that none can be pulled.
var ErrNoImage = errors.New("no image for a container")

// ErrNoEngine says that the program was built without a client for containers.
var ErrNoEngine = errors.New("this program has no client for containers: it would import github.com/lockbench/lockbench/docker")

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
