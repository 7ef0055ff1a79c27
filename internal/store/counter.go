package store

import (
	"context"
	"errors"

	"github.com/lockbench/lockbench/workloads"
)

// Counter is a number that a lock's holders read and write back one higher.
type Counter interface {
	// Read returns ErrStale if the counter refuses the token.
	Read(ctx context.Context) (int64, error)
	// Write returns ErrStale if the counter refuses the token.
	Write(ctx context.Context, n int64) error
}

// ErrStale reports a token that is older than one the counter has seen.
var ErrStale = errors.New("the fencing token is stale")

// Fenced returns the counter that checks tokens as fence says: plain checks none, and guarded checks
// them on reads and writes.
func Fenced(fence workloads.Fence, plain, guarded Counter) Counter {
	switch fence {
	case workloads.FenceOff:
		return plain
	case workloads.FenceWrites:
		return writesGuarded{plain, guarded}
	default:
		return guarded
	}
}

// writesGuarded checks only writes. It does not detect this case: a holder reads and pauses, others
// read too, and the holder writes before they do.
type writesGuarded struct {
	Counter
	guarded Counter
}

func (w writesGuarded) Write(ctx context.Context, n int64) error { return w.guarded.Write(ctx, n) }
