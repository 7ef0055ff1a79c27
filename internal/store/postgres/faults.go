package postgres

import (
	"context"
	"fmt"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/workloads"
)

// Faults returns an Injector. So far the only faults are those of the server's process.
func (s *server) Faults([]workloads.Fault) store.Injector { return injector{s} }

type injector struct{ server *server }

// Detour returns nil: there are no faults of the network.
func (injector) Detour(int) store.Through { return nil }

// Close does nothing.
func (injector) Close() {}

// Prepare does what must precede a fault, see store.Faults.
func (i injector) Prepare(ctx context.Context, fault workloads.Fault, _ store.RunMarks) (store.Action, error) {
	own := i.server.own
	switch {
	case own == nil:
		return store.Action{}, fmt.Errorf("%s: lockbench has not started this PostgreSQL", fault.Name)
	case fault.Name == workloads.Pause:
		return store.Action{Hit: own.Pause, End: own.Resume, Outage: store.Throughout}, nil
	case fault.Name != workloads.Kill:
		return store.Action{}, fmt.Errorf("%s: it cannot be had on PostgreSQL", fault.Name)
	}
	lose := fault.Data != workloads.DataKeep
	if lose {
		if err := own.refresh(ctx); err != nil {
			return store.Action{}, fmt.Errorf("%s: %w", fault.Name, err)
		}
	}
	return store.Action{
		Outage: store.Throughout, Loses: lose,
		Hit: func(ctx context.Context) error {
			i.server.ending(ctx)
			return own.Kill(ctx)
		},
		End: func(ctx context.Context) error {
			if lose {
				i.server.counted.Store(false)
			}
			ctx = context.WithoutCancel(ctx)
			if err := own.again(ctx, lose); err != nil {
				return err
			}
			i.server.began(ctx)
			return nil
		},
	}, nil
}
