// Package lock is the interface of this module's locks for services: one type Locker and one type Lease for all
// locks, as database/sql has one DB for all drivers.
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
// or, if the work must stop when the lock is lost:
//
//	err := locker.WithLock(ctx, "order:17", func(ctx context.Context) error {
//		return ship(ctx, order)
//	}, lock.Watchdog())
//
// The locks are in the sibling packages handoff, cohort, polled (spin), redisson (pubsub, fenced, fair), redlock and
// semaphore. The file NAME.md in each package describes the lock's guarantees, its costs and the faults that it does
// not survive. No lock registers anything or keeps state outside its Locker.
package lock
