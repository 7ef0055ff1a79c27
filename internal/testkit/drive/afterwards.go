package drive

import (
	"context"
	"sync/atomic"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/workloads"
)

// afterwards ends a run when the lock was acquired often enough after its fault. A fault of
// servers is over when it is undone, a fault of a client when the client hangs up.
type afterwards struct {
	store.Server
	injector store.Injector
	times    int64
	end      func()
	over     atomic.Bool
	had      atomic.Int64 // acquisitions since the fault was over
}

// Connect lets afterwards see when the instance is closed.
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

// Close is called within the window only for an instance that the fault hit.
func (i instance) Close() error {
	defer i.of.over.Store(true)
	return i.Instance.Close()
}

// faults carries out the run's fault, and notes when it is over.
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

// Holding is part of engine.Observer.
func (*afterwards) Holding(int) {}

// Releasing is part of engine.Observer.
func (*afterwards) Releasing(int) {}

// Acquired counts the acquisitions after the fault.
func (a *afterwards) Acquired(engine.Acquisition) {
	if a.over.Load() && a.had.Add(1) == a.times {
		a.end()
	}
}
