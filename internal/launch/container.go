package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// Engine runs servers in containers.
type Engine interface {
	// Obtain finds or pulls an image and returns its name. logf reports slow steps.
	Obtain(ctx context.Context, image Image, logf func(format string, args ...any)) (string, error)
	// Run starts a container and returns once its server is ready. Ready's error is ErrOutOfReach if it
	// runs and does not answer.
	Run(ctx context.Context, s Server) (Contained, error)
	// Sweep removes the containers of killed lockbench processes.
	Sweep(ctx context.Context) Swept
}

// Contained is a server in a container. Its methods are safe for concurrent use.
type Contained interface {
	Starting
	Network() string
	// PID is the engine's number of the server's process, 0 if not known. It may be a number on
	// another machine.
	PID(ctx context.Context) int
	Kill(ctx context.Context) error
	Pause(ctx context.Context) error // stops all its processes
	Resume(ctx context.Context) error
	// Put replaces files of the ended server: their contents, by their path in the working directory.
	Put(ctx context.Context, files map[string]string) error
	Again(ctx context.Context) error // starts the ended server
	// Close removes the container. It also works with a context that has ended.
	Close(ctx context.Context) error
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

var (
	// ErrOutOfReach says that a server runs but cannot be reached from here.
	ErrOutOfReach = errors.New("it runs but does not answer at its address")
	// ErrNoImage says that there is no image to run, and that none can be pulled.
	ErrNoImage = errors.New("no image for a container")
	// ErrNoEngine says that the program was built without a client for containers.
	ErrNoEngine = errors.New("this program has no client for containers: " +
		"it would import github.com/lockbench/lockbench/docker")
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

// InContainer starts a server in a container of an image, and calls its Ready once it listens.
func InContainer(ctx context.Context, engine Engine, image string, s Server) (Started, error) {
	s.Container.Image = image
	if s.Container.Logf == nil {
		s.Container.Logf = func(string, ...any) {}
	}
	answers := s.Ready
	s.Ready = func(ctx context.Context, now Starting) error {
		if err := reached(ctx, now, s.Container.Listens); err != nil {
			return err
		}
		return answers(ctx, now)
	}
	b := &box{engine: engine, of: s}
	first, err := engine.Run(ctx, s)
	if err != nil {
		return nil, err
	}
	b.now, b.addr = first, first.Addr()
	b.of.Container.Network = first.Network()
	return b, nil
}

// reached waits until a server listens. If a container runs without a listener at its address for too
// long, it is out of reach, for example on another loopback interface than ours.
func reached(ctx context.Context, c Starting, listens string) error {
	patience := 20 * time.Second
	for began := time.Now(); ; {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.Addr())
		switch {
		case err == nil:
			return conn.Close()
		case ctx.Err() != nil:
			return fmt.Errorf("it is not ready: %w", errors.Join(err, ctx.Err()))
		case c.Ended(ctx):
			return nil // Ready reports it
		case time.Since(began) > patience:
			return fmt.Errorf("%w %s", ErrOutOfReach, c.Addr())
		}
		if listens != "" && strings.Contains(c.Log(ctx), listens) {
			listens, began, patience = "", time.Now(), 2*time.Second
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// box is a container that Anew can replace by an empty one.
type box struct {
	engine Engine
	of     Server
	addr   string

	mu     sync.Mutex
	now    Contained
	pid    int  // 0 until PID finds it
	killed bool // and not started again: its PID may be another process's now

	used cpuTime
}

func (b *box) current() Contained {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *box) Addr() string                     { return b.addr }
func (b *box) Network() string                  { return b.of.Container.Network }
func (b *box) Began() time.Time                 { return b.current().Began() }
func (b *box) Log(ctx context.Context) string   { return b.current().Log(ctx) }
func (b *box) Ended(ctx context.Context) bool   { return b.current().Ended(ctx) }
func (b *box) Pause(ctx context.Context) error  { return b.current().Pause(ctx) }
func (b *box) Resume(ctx context.Context) error { return b.current().Resume(ctx) }
func (b *box) Close(ctx context.Context) error  { return b.current().Close(ctx) }

// CPU returns nil if no process is known.
func (b *box) CPU() *float64 {
	b.mu.Lock()
	killed := b.killed
	b.mu.Unlock()
	if killed {
		return b.used.read(0, nil)
	}
	return b.used.read(b.PID(), descendants(b.PID()))
}

// Kill notes the CPU time first.
func (b *box) Kill(ctx context.Context) error {
	b.CPU()
	if err := b.current().Kill(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.killed = true
	return nil
}

// Again also resets the pid: the old process has ended.
func (b *box) Again(ctx context.Context) error {
	b.mu.Lock()
	b.pid, b.killed = 0, false
	b.mu.Unlock()
	return b.current().Again(ctx)
}

// PID asks the engine once, and for at most two seconds. A number from another machine would be another
// process here.
func (b *box) PID() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pid == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if pid := b.now.PID(ctx); pid > 0 && Runs(pid, b.of.Name) {
			b.pid = pid
		}
	}
	return b.pid
}

// Anew replaces the files with the data, or else the container: an image without other programs has no
// way to delete files.
func (b *box) Anew(ctx context.Context) error {
	if empty := b.of.Container.Empty; empty != nil {
		if err := b.Kill(ctx); err != nil {
			return err
		}
		if err := b.current().Put(ctx, empty); err != nil {
			return err
		}
		return b.Again(ctx)
	}
	b.CPU() // notes it
	b.mu.Lock()
	defer b.mu.Unlock()
	port, err := portOf(b.addr)
	if err != nil {
		return err
	}
	var meanwhile Kept
	meanwhile.Keep(port, b.of.Beside) // Close frees them
	defer meanwhile.Free()
	if err := b.now.Close(ctx); err != nil {
		return err
	}
	same := b.of
	same.Pick, same.Taken = func() (int, error) { return port, nil }, nil
	next, err := b.engine.Run(ctx, same)
	if err != nil {
		return fmt.Errorf("start it without its data: %w", err)
	}
	b.now, b.pid, b.killed = next, 0, false
	return nil
}

func portOf(addr string) (int, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, err
	}
	return net.LookupPort("tcp", port)
}
