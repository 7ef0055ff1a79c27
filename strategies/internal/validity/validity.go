// Package validity computes how long a lease is valid, for locks whose server keeps a TTL.
package validity

import (
	"errors"
	"fmt"
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
