package cohort

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

const testTTL = time.Second

// bench is one or more processes of one lock, in a bubble whose time is not ours.
type bench struct {
	*testing.T
	server    *server
	processes []*process
	lockers   []*Locker
}

// inBubble has a test play, and sees that nothing is left.
func inBubble(t *testing.T, processes int, options Options, test func(b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, server: newServer(t, testTTL)}
		for n := range processes {
			p := b.server.process(n)
			b.processes = append(b.processes, p)
			b.lockers = append(b.lockers, newLocker(strategies.Config{TTL: testTTL}, options, p))
		}
		test(b)
		for _, l := range b.lockers {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if n := b.queued(); n > 0 {
			t.Errorf("%d entries are left in the queue", n)
		}
	})
}

// caller is somebody who acquires.
type caller struct {
	held   chan *Lease
	failed chan error
	cancel context.CancelFunc
}

// come has somebody acquire in a process, and returns when he has the lock or waits.
func (b *bench) come(process int) *caller {
	ctx, cancel := context.WithCancel(context.Background())
	w := &caller{make(chan *Lease, 1), make(chan error, 1), cancel}
	go func() {
		defer cancel()
		held, err := b.lockers[process].acquire(ctx, "key")
		if err != nil {
			w.failed <- err
		} else {
			w.held <- held
		}
	}()
	synctest.Wait()
	return w
}

// has returns the lease that somebody has by now.
func (b *bench) has(w *caller) *Lease {
	b.Helper()
	synctest.Wait()
	select {
	case held := <-w.held:
		return held
	case err := <-w.failed:
		b.Fatalf("a waiter got: %v", err)
	default:
		b.Fatal("a waiter does not have the lock")
	}
	return nil
}

// gets is has for somebody who comes now.
func (b *bench) gets(process int) *Lease {
	b.Helper()
	return b.has(b.come(process))
}

// waits sees that somebody waits still.
func (b *bench) waits(w *caller) {
	b.Helper()
	synctest.Wait()
	if len(w.held)+len(w.failed) > 0 {
		b.Fatal("a waiter does not wait any more")
	}
}

// fails sees that somebody's wait has ended with that error.
func (b *bench) fails(w *caller, want error) {
	b.Helper()
	synctest.Wait()
	select {
	case err := <-w.failed:
		if !errors.Is(err, want) {
			b.Fatalf("a wait ended with %v, want %v", err, want)
		}
	default:
		b.Fatalf("a wait has not ended with %v", want)
	}
}

// release must return that.
func (b *bench) release(held *Lease, want error) {
	b.Helper()
	if err := held.Release(context.Background()); !errors.Is(err, want) {
		b.Fatalf("a release returned %v, want %v", err, want)
	}
	synctest.Wait()
}

// carriedOut must be the commands since the last call.
func (b *bench) carriedOut(want counts) {
	b.Helper()
	b.server.mu.Lock()
	defer b.server.mu.Unlock()
	if b.server.done != want {
		b.Errorf("carried out: %+v, want %+v", b.server.done, want)
	}
	b.server.done = counts{}
}

// queued is how many entries the server's queue has.
func (b *bench) queued() int {
	b.server.mu.Lock()
	defer b.server.mu.Unlock()
	return len(b.server.queue)
}

// on has a command of a process go wrong so, from now on.
func (b *bench) on(process int, command string, f fault) {
	b.faults(process, func(c string) fault {
		if c == command {
			return f
		}
		return fault{}
	})
}

// faults has a process's commands go wrong in that way, from now on.
func (b *bench) faults(process int, faults func(command string) fault) {
	b.server.mu.Lock()
	defer b.server.mu.Unlock()
	b.processes[process].faults = faults
}
