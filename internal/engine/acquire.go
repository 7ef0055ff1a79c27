package engine

// One acquisition, which clients of the engine, clients of DriveLocally and targets of faults all execute in this way.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/strategies"
)

var (
	// errNoLease is the error of a wait whose Locker violated its contract.
	errNoLease   = errors.New("the strategy returned neither a lease nor an error")
	errNoTryLock = fmt.Errorf("%w: it has no try-lock, which --timeout 0 needs", ErrUnsupported)
)

// Acquire acquires a lock within a workload's timeout: nil means no limit, 0 a try-lock.
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
// the timeout of the wait may have ended it; over means that the end of the run may have.
func outcomeOf(err error, limited, over bool) measure.Outcome {
	switch {
	case errors.Is(err, strategies.ErrHeld), limited && errors.Is(err, context.DeadlineExceeded):
		return measure.TimedOut
	case over && errors.Is(err, context.Canceled):
		return measure.Stopped
	}
	return measure.Failed
}
