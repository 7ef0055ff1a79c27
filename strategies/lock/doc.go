// Package lock is what a service sees of the locks of this module: one Locker and one
// Lease, whichever lock is behind them, as database/sql has one DB for all drivers.
//
//	locker, err := handoff.New(client, lock.TTL(10*time.Second))
//	if err != nil {
//		return err
//	}
//	defer locker.Close()
//
//	lease, err := locker.Acquire(ctx, "order:17", lock.Wait(2*time.Second))
//	if errors.Is(err, lock.ErrHeld) {
//		return errBusy
//	}
//	if err != nil {
//		return err
//	}
//	defer lease.Release(context.WithoutCancel(ctx))
//
// or, where the work should stop when the lock is lost:
//
//	err := locker.WithLock(ctx, "order:17", func(ctx context.Context) error {
//		return ship(ctx, order)
//	}, lock.Watchdog())
//
// The locks are in the packages beside this one: handoff, cohort, polled (spin),
// redisson (pubsub, fenced, fair), redlock and semaphore. The NAME.md beside each says what it guarantees, what it
// costs, and what breaks it. None of them registers anything or keeps state outside
// of its Locker.
package lock
