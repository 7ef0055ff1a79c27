package handoff_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// book notes who holds the locks of a server in a test. It reports two holders of one lock at the same time,
// and tokens that do not grow.
type book struct {
	t     *testing.T
	mu    sync.Mutex
	holds map[string]*holding // the latest of each key
	last  map[string]int64    // largest token of each key
}

// holding is a lease that stands in a book until it is released.
type holding struct {
	*handoff.Lease
	who, key string
	book     *book
	left     bool // the book's mutex guards it
}

// books has one for each test and server.
var books sync.Map

func bookOf(t *testing.T, p trial.Process) *book {
	b := &book{t: t, holds: map[string]*holding{}, last: map[string]int64{}}
	found, _ := books.LoadOrStore(fmt.Sprint(t.Name(), goredis.OptionsOf(p.Config.Nodes[0]).Addrs), b)
	return found.(*book)
}

// enter notes a lease that was just granted, if err is nil.
func enter(t *testing.T, p trial.Process, who, key string, lease strategies.Lease, err error) (*holding, error) {
	if err != nil {
		return nil, err
	}
	b := bookOf(t, p)
	h := &holding{Lease: lease.(*handoff.Lease), who: who, key: key, book: b}
	b.mu.Lock()
	defer b.mu.Unlock()
	now, other := time.Now(), b.holds[key]
	if other != nil && !other.left && now.Before(other.ValidUntil()) && now.Before(h.ValidUntil()) {
		t.Errorf("%s got %q with token %d while %s held it with token %d",
			who, key, h.FencingToken(), other.who, other.FencingToken())
	}
	if h.FencingToken() <= b.last[key] {
		t.Errorf("%s got token %d of %q after %d", who, h.FencingToken(), key, b.last[key])
	}
	b.holds[key], b.last[key] = h, max(b.last[key], h.FencingToken())
	return h, nil
}

// Release releases the lease, which its holder no longer relies on.
func (h *holding) Release(ctx context.Context) error {
	h.book.mu.Lock()
	h.left = true
	h.book.mu.Unlock()
	return h.Lease.Release(ctx)
}

// ends notes that Redis loses the locks of a process's server, so that all leases of them end.
func ends(t *testing.T, p trial.Process) {
	b := bookOf(t, p)
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.holds)
}

// acquire must succeed, on "key".
func acquire(t *testing.T, p trial.Process) *holding { t.Helper(); return acquireKey(t, p, "key") }

func acquireKey(t *testing.T, p trial.Process, key string) *holding {
	t.Helper()
	lease, _ := enter(t, p, "the test", key, p.Acquire(t, key), nil)
	return lease
}

// try asks for the lock on a key without waiting.
func try(ctx context.Context, t *testing.T, p trial.Process, key string) (*holding, error) {
	lease, err := locker(p).TryAcquire(ctx, key)
	return enter(t, p, "who tried", key, lease, err)
}
