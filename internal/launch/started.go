package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Started is a server that lockbench started, as a process or in a container, and may therefore kill,
// pause and empty. It is safe for concurrent use.
type Started interface {
	Addr() string    // host:port, always the same
	Network() string // loopback, host or published port
	// PID is the server's process ID on this machine; 0 if not known.
	PID() int
	Log(ctx context.Context) string // written since its last start
	Ended(ctx context.Context) bool
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

// InContainer starts a server in a container and calls its Ready once it listens. name is the
// program's name, which identifies the process on this machine.
func InContainer(ctx context.Context, engine Engine, c Container, name string) (Started, error) {
	if c.Logf == nil {
		c.Logf = func(string, ...any) {}
	}
	answers := c.Ready
	c.Ready = func(ctx context.Context, now Contained) error {
		if err := reached(ctx, now); err != nil {
			return err
		}
		return answers(ctx, now)
	}
	b := &box{engine: engine, of: c, name: name}
	first, err := engine.Run(ctx, c)
	if err != nil {
		return nil, err
	}
	b.now, b.addr = first, first.Addr()
	b.of.Network = first.Network()
	return b, nil
}

// box is a container that Anew can replace by an empty one.
type box struct {
	engine Engine
	of     Container
	name   string
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
func (b *box) Network() string                  { return b.of.Network }
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

// PID asks the engine once. A number from another machine would be another process here.
func (b *box) PID() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pid == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
		defer cancel()
		if pid := b.now.PID(ctx); pid > 0 && Runs(pid, b.name) {
			b.pid = pid
		}
	}
	return b.pid
}

// askTimeout limits a question to an engine about a container.
const askTimeout = 2 * time.Second

// Anew removes the container and starts another one on the same port: an image without other programs
// has no way to delete files.
func (b *box) Anew(ctx context.Context) error {
	b.CPU() // notes it
	b.mu.Lock()
	defer b.mu.Unlock()
	_, text, err := net.SplitHostPort(b.addr)
	if err != nil {
		return err
	}
	port, err := net.LookupPort("tcp", text)
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

// reached waits until a server listens. If a container runs without a listener at its address for too
// long, it is out of reach, for example on another loopback interface than ours.
func reached(ctx context.Context, c Contained) error {
	const patience = 20 * time.Second
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
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}
