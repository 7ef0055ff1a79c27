// Package validity holds the end of a lease, which its holder moves and an
// auditor may read at the same time.
package validity

import (
	"sync"
	"time"
)

// Until is an instant that is safe for concurrent use.
type Until struct {
	mu   sync.Mutex
	when time.Time
}

// Set moves the instant.
func (u *Until) Set(when time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.when = when
}

// Get returns the instant, the zero time if it was never set.
func (u *Until) Get() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.when
}
