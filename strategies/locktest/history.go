package locktest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// Event is how an operation on a lock ended.
type Event int

// How an operation can end.
const (
	Acquired Event = iota // an acquire or a try returned a lease
	Failed                // an acquire or a try returned an error: it may hold the lock all the same
	Refused               // a try returned ErrHeld
	Released              // a release returned nil
	Lost                  // a release returned ErrNotHeld
	Unclear               // a release returned another error: it may have released all the same
)

// Operation is one call of one client. Its times count from the beginning of the history.
type Operation struct {
	Client       int
	Key          string
	Event        Event
	Lease        int   // the number of the lease acquired or released, from 1; 0 means none
	Token        int64 // the fencing token; 0 if the lease has none
	Call, Return time.Duration
	// Until is when the validity of the lease ended, as the lease says; 0 means that only a
	// release ends it.
	Until time.Duration
}

// History records what concurrent clients do with a lock.
type History struct {
	began time.Time

	mu         sync.Mutex
	operations []Operation
	leases     int
}

// NewHistory returns a history that begins now.
func NewHistory() *History { return &History{began: time.Now()} }

// Operations returns the operations that have ended so far, in the order of their calls.
func (h *History) Operations() []Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	operations := slices.Clone(h.operations)
	slices.SortStableFunc(operations, func(a, b Operation) int { return cmp.Compare(a.Call, b.Call) })
	return operations
}

// Watch returns a Locker that records what that client does with locker; it has a try-lock if
// locker has one. The calls of one client must not overlap. The leases have the abilities of
// locker's leases: strategies.As finds them.
func (h *History) Watch(client int, locker strategies.Locker) strategies.Locker {
	w := &watched{locker, h, client}
	if trier, ok := strategies.As[strategies.Trier](locker); ok {
		return &watchedTrier{w, trier}
	}
	return w
}

func (h *History) now() time.Duration { return time.Since(h.began) }

// add adds an operation and returns its number.
func (h *History) add(o Operation) int {
	o.Return = h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if o.Event == Acquired {
		h.leases++
		o.Lease = h.leases
	}
	h.operations = append(h.operations, o)
	return len(h.operations) - 1
}

// change changes an earlier operation.
func (h *History) change(number int, do func(*Operation)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	do(&h.operations[number])
}

type watched struct {
	strategies.Locker
	history *History
	client  int
}

type watchedTrier struct {
	*watched
	trier strategies.Trier
}

func (w *watched) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return w.record(ctx, key, w.Locker.Acquire)
}

func (w *watchedTrier) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return w.record(ctx, key, w.trier.TryAcquire)
}

func (w *watched) record(ctx context.Context, key string,
	acquire func(context.Context, string) (strategies.Lease, error),
) (strategies.Lease, error) {
	o := Operation{Client: w.client, Key: key, Call: w.history.now()}
	lease, err := acquire(ctx, key)
	switch {
	case errors.Is(err, strategies.ErrHeld):
		o.Event = Refused
	case err != nil:
		o.Event = Failed
	}
	if fenced, ok := strategies.As[strategies.Fenced](lease); ok {
		o.Token = fenced.FencingToken()
	}
	number := w.history.add(o)
	if err != nil {
		return nil, err
	}
	held := &watchedLease{lease: lease, history: w.history, acquired: number}
	held.note()
	if extender, ok := strategies.As[strategies.Extender](lease); ok {
		return &watchedExtender{held, extender}, nil
	}
	return held, nil
}

type watchedLease struct {
	lease    strategies.Lease
	history  *History
	acquired int // the number of that operation
}

// note records until when the lease is valid, as far as is known now.
func (held *watchedLease) note() {
	if timed, ok := strategies.As[strategies.Timed](held.lease); ok {
		until := timed.ValidUntil().Sub(held.history.began)
		held.history.change(held.acquired, func(o *Operation) { o.Until = until })
	}
}

// Unwrap returns the locker's lease.
func (held *watchedLease) Unwrap() strategies.Lease { return held.lease }

func (held *watchedLease) Release(ctx context.Context) error {
	held.note()
	var o Operation
	held.history.change(held.acquired, func(acquired *Operation) {
		o = Operation{Client: acquired.Client, Key: acquired.Key, Lease: acquired.Lease}
	})
	o.Call = held.history.now()
	err := held.lease.Release(ctx)
	switch {
	case err == nil:
		o.Event = Released
	case errors.Is(err, strategies.ErrNotHeld):
		o.Event = Lost
	default:
		o.Event = Unclear
	}
	held.history.add(o)
	return err
}

type watchedExtender struct {
	*watchedLease
	extender strategies.Extender
}

// Extend is not recorded as an operation: it prolongs the validity of its lease.
func (held *watchedExtender) Extend(ctx context.Context, ttl time.Duration) error {
	err := held.extender.Extend(ctx, ttl)
	held.note()
	return err
}
