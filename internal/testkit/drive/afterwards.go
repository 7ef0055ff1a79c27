package drive

import (
	"context"
	"sync/atomic"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/workloads"
)

// afterwards ends a run when the lock was had often enough after its fault: one of servers
// is over when it has been undone, and one of a client when that has hung up.
type afterwards struct {
	store.Server
	injector store.Injector
	times    int64
	end      func()
	over     atomic.Bool
	had      atomic.Int64 // since then
}

// Connect connects also whoever is hit.
func (a *afterwards) Connect(ctx context.Context, name string, pool int, detour store.Through) (store.Instance, error) {
	i, err := a.Server.Connect(ctx, name, pool, detour)
	if err != nil {
		return nil, err
	}
	return instance{i, a}, nil
}

type instance struct {
	store.Instance
	of *afterwards
}

// Close comes within the window to nobody but who was hit.
func (i instance) Close() error {
	defer i.of.over.Store(true)
	return i.Instance.Close()
}

// faults are those of the run.
type faults struct{ *afterwards }

func (f faults) Detour(instance int) store.Through { return f.injector.Detour(instance) }

func (f faults) Prepare(ctx context.Context, fault workloads.Fault, where store.RunMarks) (store.Action, error) {
	action, err := f.injector.Prepare(ctx, fault, where)
	if end := action.End; end != nil {
		action.End = func(ctx context.Context) error {
			defer f.over.Store(true)
			return end(ctx)
		}
	}
	return action, err
}

// Holding is told to an engine.Observer.
func (*afterwards) Holding(int) {}

// Releasing is told to an engine.Observer.
func (*afterwards) Releasing(int) {}

// Acquired counts.
func (a *afterwards) Acquired(engine.Acquisition) {
	if a.over.Load() && a.had.Add(1) == a.times {
		a.end()
	}
}
