package engine

// This file implements the acquisition for the engine's clients, the clients of DriveLocally and the targets of faults.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/strategies"
)

var (
	// errNoLease is the error if a Locker violates its contract by returning neither a lease nor an error.
	errNoLease   = errors.New("the strategy returned neither a lease nor an error")
	errNoTryLock = fmt.Errorf("%w: the strategy has no try-lock, which --timeout 0 needs", ErrUnsupported)
)

// Acquire acquires the lock on a key within a workload's timeout. A nil timeout means no limit, and 0 means a try-lock.
// It always returns a lease or an error. The error wraps ErrUnsupported if the locker lacks a required try-lock.
func Acquire(
	ctx context.Context, locker strategies.Locker, key string, timeout *time.Duration,
) (lease strategies.Lease, err error) {
	switch {
	case timeout == nil:
		lease, err = locker.Acquire(ctx, key)
	case *timeout == 0:
		trier, ok := strategies.As[strategies.Trier](locker)
		if !ok {
			return nil, errNoTryLock
		}
		lease, err = trier.TryAcquire(ctx, key)
	default:
		within, cancel := context.WithTimeout(ctx, *timeout)
		defer cancel()
		lease, err = locker.Acquire(within, key)
	}
	if lease == nil && err == nil {
		err = errNoLease
	}
	return lease, err
}

// outcomeOf classifies a wait that ended with an error, for clients of the engine and of drivers. limited means that
// the wait had a timeout, which may have ended it. over means that the run may have ended it.
func outcomeOf(err error, limited, over bool) measure.Outcome {
	switch {
	case errors.Is(err, strategies.ErrHeld), limited && errors.Is(err, context.DeadlineExceeded):
		return measure.TimedOut
	case over && errors.Is(err, context.Canceled):
		return measure.Stopped
	}
	return measure.Failed
}
