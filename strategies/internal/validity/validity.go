// Package validity holds the end of a lease, which its holder moves while an auditor may read
// it.
package validity

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// ErrLate says that Redis granted a lock, but its answer came after the lease had run out.
var ErrLate = errors.New("granted too late: the lease had run out when the answer came")

// UnlessLate returns the error of an attempt for a caller that tries again after ErrLate: nil
// for ErrLate.
func UnlessLate(err error) error {
	if errors.Is(err, ErrLate) {
		return nil
	}
	return err
}

// TTL returns a lease's TTL in whole milliseconds, as Redis counts it, or an error if it is
// too short.
func TTL(ttl time.Duration) (time.Duration, error) {
	if ttl < time.Millisecond {
		return 0, fmt.Errorf("the TTL must be at least 1ms, not %v", ttl)
	}
	return ttl.Truncate(time.Millisecond), nil
}

// start is the zero of all instants, so that they keep the monotonic clock.
var start = time.Now()

// Until is an instant that is safe for concurrent use.
type Until struct{ ns atomic.Int64 } // after start; 0 if it was never set

// Set moves the instant.
func (u *Until) Set(when time.Time) { u.ns.Store(int64(when.Sub(start))) }

// Get returns the instant, the zero time if it was never set.
func (u *Until) Get() time.Time {
	ns := u.ns.Load()
	if ns == 0 {
		return time.Time{}
	}
	return start.Add(time.Duration(ns))
}

// Lower moves the instant to an earlier one, if it is later.
func (u *Until) Lower(to time.Time) {
	at := int64(to.Sub(start))
	for before := u.ns.Load(); before > at && !u.ns.CompareAndSwap(before, at); before = u.ns.Load() { // 0 was never set
	}
}
