// Package validity computes how long a lease is valid, for locks whose TTL the server counts.
package validity

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ErrLate is the error of a grant whose reply arrived after the lease had expired.
var ErrLate = errors.New("granted too late: the lease had expired when the reply arrived")

// UnlessLate returns nil if err is ErrLate, and err otherwise. It is for callers that try again after ErrLate.
func UnlessLate(err error) error {
	if errors.Is(err, ErrLate) {
		return nil
	}
	return err
}

// TTL returns a lease's TTL in whole milliseconds, the resolution of Redis, or an error if it is shorter than 1 ms.
func TTL(ttl time.Duration) (time.Duration, error) {
	if ttl < time.Millisecond {
		return 0, fmt.Errorf("the TTL must be at least 1ms, not %v", ttl)
	}
	return ttl.Truncate(time.Millisecond), nil
}

// Until is the time until which a lease is valid, by this process's clock. It is safe for concurrent use.
type Until struct {
	mu     sync.Mutex
	end    time.Time
	unsure time.Duration // the shortest TTL of extensions that got no reply; 0 if there are none
	sent   []*extension  // extensions that are under way
}

// extension is a command that sets the lease's TTL to ttl. shortest is the smallest ttl of this extension and of those
// that the server may execute after it.
type extension struct{ ttl, shortest time.Duration }

// Set sets the end of the validity.
func (u *Until) Set(end time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.end = end
}

// Get returns the end of the validity, or the zero time if it was never set.
func (u *Until) Get() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.end
}

// Raise sets the end of the validity if the given end is later. It is used after commands that never shorten a lease.
func (u *Until) Raise(end time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if end.After(u.end) {
		u.end = end
	}
}

// Extending must be called before a command that moves the lease's end to ttl from now, which may be earlier than the
// present end. After the command the caller must call the returned function with two arguments: done is true if the
// server has executed the command, and open is true if the server may still execute it because no reply arrived.
//
// The server may execute concurrent commands in any order. An extension therefore prolongs the lease only by the
// shortest TTL of all extensions that were under way at the same time.
func (u *Until) Extending(sent time.Time, ttl time.Duration) (answer func(done, open bool)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if end := sent.Add(ttl); end.Before(u.end) {
		u.end = end
	}
	e := &extension{ttl, ttl}
	if u.unsure > 0 {
		e.shortest = min(ttl, u.unsure)
	}
	for _, other := range u.sent {
		e.shortest, other.shortest = min(e.shortest, other.ttl), min(other.shortest, ttl)
	}
	u.sent = append(u.sent, e)
	return func(done, open bool) {
		u.mu.Lock()
		defer u.mu.Unlock()
		if until := sent.Add(e.shortest); done && until.After(u.end) {
			u.end = until
		}
		u.sent = slices.DeleteFunc(u.sent, func(other *extension) bool { return other == e })
		if open && (u.unsure == 0 || ttl < u.unsure) {
			u.unsure = ttl
		}
	}
}
