package launch

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Engine runs servers in containers.
type Engine interface {
	// Obtain finds an image, pulls it, or makes it of this machine's own programs. logf is
	// told what takes time.
	Obtain(ctx context.Context, image Image, logf func(format string, args ...any)) (string, error)
	// Run starts a container and returns once its server is ready.
	Run(ctx context.Context, c Container) (Contained, error)
	// Sweep removes the containers of lockbenches that were killed.
	Sweep(ctx context.Context) Swept
}

// Image is what a container is made of.
type Image struct {
	Wanted  string // asked for; "" is any
	Default string // the first that is tried if none is asked for
	// Repository is that of images made on this machine of Parts, where no registry has
	// Default.
	Repository string
	Package    string // of the distribution that the parts are from, for people
	Parts      func() (Parts, error)
}

// Parts are what an image is made of on this machine.
type Parts struct {
	// Files of this machine by their places in the image, as usr/bin/redis-server. Programs
	// get the libraries that they need.
	Files map[string]string
	Texts map[string]string // the contents of further files, by their places
	Open  []string          // directories that everybody may write to
	Lines []string          // of the Dockerfile, as ENV NAME=VALUE
}

// Container is a server to be started in a container.
type Container struct {
	Image string
	RunID string // marks what belongs to the run
	// Network is "host", "published port" or "" for the one by which it is reached best.
	Network string
	Pick    Picker
	CPUs    []int // to run on; empty is any
	// Entrypoint is what Command are the arguments of; empty is the image's own.
	Entrypoint []string
	User       string            // that it runs as; "" is the image's own
	Env        map[string]string // beside the image's own
	// Files are put into it before it starts: their contents, by absolute paths. It
	// listens on that port.
	Files func(port int) map[string]string
	// Command is the program with its arguments, listening on that interface and port.
	// published says that nobody reaches it but through a published port.
	Command func(bind string, port int, published bool) []string
	Inside  int // the port behind a published one
	// Beside is as of Program, where it shares the host's network.
	Beside func(port int) []int
	// Ready waits until it answers; its error is an ErrOutOfReach if it runs and does not.
	Ready func(ctx context.Context, c Contained) error
	Taken func(err error) bool // as of Program
	Logf  func(format string, args ...any)
}

// Contained is a server in a container. Its methods are safe for concurrent use.
type Contained interface {
	Addr() string    // host:port, the same after Again
	Network() string // host or published port
	// PID is what the engine calls the server's among this machine's processes; 0 where it
	// does not. It may be somebody else's, of another machine.
	PID(ctx context.Context) int
	Started() time.Time // last
	Log(ctx context.Context) string
	Ended(ctx context.Context) bool
	// Kill ends the server with SIGKILL. It is no error when it had ended already.
	Kill(ctx context.Context) error
	Pause(ctx context.Context) error // stops all its processes
	Resume(ctx context.Context) error
	// Put replaces a file in the working directory of the ended server.
	Put(ctx context.Context, name string, contents []byte) error
	Again(ctx context.Context) error // starts the server that has ended
	// Close removes the container, with a context that has ended too.
	Close(ctx context.Context) error
}

// ErrOutOfReach says that a server runs but cannot be reached from here.
var ErrOutOfReach = errors.New("it runs but does not answer at its address")

// ErrNoEngine says that the program was built without what speaks to a container engine.
var ErrNoEngine = errors.New("this program has no client for containers: it would import github.com/lockbench/lockbench/docker")

var engine struct {
	sync.RWMutex
	open func(context.Context) (Engine, error)
}

// UseEngine makes known how an Engine that answers is opened. It is meant for init
// functions, and panics the second time.
func UseEngine(open func(context.Context) (Engine, error)) {
	engine.Lock()
	defer engine.Unlock()
	if engine.open != nil {
		panic("launch: there is a container engine already")
	}
	engine.open = open
}

// OpenEngine opens the Engine that UseEngine made known; else the error is ErrNoEngine.
func OpenEngine(ctx context.Context) (Engine, error) {
	engine.RLock()
	open := engine.open
	engine.RUnlock()
	if open == nil {
		return nil, ErrNoEngine
	}
	return open(ctx)
}
