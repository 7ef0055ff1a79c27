package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lockbench/lockbench/strategies"
)

// Event is the result of an operation on a lock.
type Event int

// These are the possible results of an operation.
const (
	Acquired Event = iota // an acquire or a try returned a lease
	Failed                // an acquire or a try returned an error; the lock may still have been granted
	Refused               // a try returned ErrHeld
	Released              // a release returned nil
	Lost                  // a release returned ErrNotHeld
	Unclear               // a release returned another error; the lock may still have been freed
)

// Operation is one call of one client. Its times are durations since the beginning of the history.
type Operation struct {
	Client       int
	Key          string
	Event        Event
	Lease        int   // the number of the lease acquired or released, from 1; 0 means none
	Token        int64 // the fencing token; 0 if the lease has none
	Call, Return time.Duration
	// Until is the end of the lease's validity as the lease reports it; 0 means that only a release ends the lease.
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

// Operations returns the operations whose calls have returned so far, in the order in which the calls began.
func (h *History) Operations() []Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	operations := slices.Clone(h.operations)
	slices.SortStableFunc(operations, func(a, b Operation) int { return cmp.Compare(a.Call, b.Call) })
	return operations
}

// Watch returns a Locker that records a client's calls of locker. The returned Locker implements strategies.Trier if
// locker does. The calls of one client must not overlap. The returned leases have the capabilities of locker's leases,
// as found by strategies.As.
func (h *History) Watch(client int, locker strategies.Locker) strategies.Locker {
	w := &watched{locker, h, client}
	if trier, ok := strategies.As[strategies.Trier](locker); ok {
		return &watchedTrier{w, trier}
	}
	return w
}

func (h *History) now() time.Duration { return time.Since(h.began) }

// add records an operation that has just returned. It returns the operation's index and the number of its lease.
func (h *History) add(o Operation) (place, lease int) {
	o.Return = h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if o.Event == Acquired {
		h.leases++
		o.Lease = h.leases
	}
	h.operations = append(h.operations, o)
	return len(h.operations) - 1, o.Lease
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
	held := &watchedLease{lease: lease, history: w.history, release: Operation{Client: w.client, Key: key}}
	held.acquired, held.release.Lease = w.history.add(o)
	if err != nil {
		return nil, err
	}
	held.note()
	if extender, ok := strategies.As[strategies.Extender](lease); ok {
		return &watchedExtender{held, extender}, nil
	}
	return held, nil
}

type watchedLease struct {
	lease    strategies.Lease
	history  *History
	acquired int       // the index of the acquire in the history
	release  Operation // the operation that will release the lease
}

// note records the end of the lease's validity as the lease reports it now.
func (held *watchedLease) note() {
	if timed, ok := strategies.As[strategies.Timed](held.lease); ok {
		until := timed.ValidUntil().Sub(held.history.began)
		held.history.mu.Lock()
		defer held.history.mu.Unlock()
		held.history.operations[held.acquired].Until = until
	}
}

// Unwrap returns the locker's lease.
func (held *watchedLease) Unwrap() strategies.Lease { return held.lease }

func (held *watchedLease) Release(ctx context.Context) error {
	held.note()
	o := held.release
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

// Extend extends the lease and records its new validity. It is not an operation of the history.
func (held *watchedExtender) Extend(ctx context.Context, ttl time.Duration) error {
	err := held.extender.Extend(ctx, ttl)
	held.note()
	return err
}

// ErrUndecided means that CheckHistory neither found an order that explains the history nor proved that there is none.
var ErrUndecided = errors.New("no verdict on the history")

// checkLimit bounds the time for which CheckHistory searches, because the problem is NP-hard.
const checkLimit = 10 * time.Second

// CheckHistory returns nil if the operations could have happened on the model's lock in some order, each at a moment
// between its call and its return (linearizability, Herlihy and Wing, 1990; porcupine searches the order). Keys are
// independent. It draws an impossible history as an HTML page in dir and names the page in the error. If dir is "", it
// uses the system's directory for temporary files.
//
// An uncertain result never makes a history impossible. A failed acquire may hold the lock at any time after its call,
// because Redis may run the command long after the client has given up. An unclear release may free the lock at any
// later time. A lease that reports the end of its validity may expire at any time after this end, and no other client
// may acquire the lock before this end. A refused try counts only if no other attempt ran at the same time, because two
// concurrent attempts may both fail to get a quorum.
//
// It first checks only the operations that acquired or released a lease. This is fast, and sufficient to find
// overlapping leases, which no failed or refused attempt can excuse.
func CheckHistory(model Model, history []Operation, dir string) error {
	if err := check(model, leases(history), dir); err != nil {
		return err
	}
	return check(model, history, dir)
}

// leases returns the operations that acquired or released a lease.
func leases(history []Operation) []Operation {
	return slices.DeleteFunc(slices.Clone(history), func(o Operation) bool { return o.Lease == 0 })
}

func check(model Model, history []Operation, dir string) error {
	result, info := porcupine.CheckOperationsVerbose(model.porcupine(), events(history), checkLimit)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("%w within %v: %d operations", ErrUndecided, checkLimit, len(history))
	}
	file, err := os.CreateTemp(dir, "lockbench-history-*.html")
	if err != nil {
		return fmt.Errorf("a %v cannot produce this history (its diagram cannot be drawn: %w)", model, err)
	}
	err = porcupine.Visualize(model.porcupine(), info, file)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("a %v cannot produce this history (its diagram cannot be drawn: %w)", model, err)
	}
	return fmt.Errorf("a %v cannot produce this history; its diagram is in %s", model, file.Name())
}

// never is the return time of an operation that may happen at any time after its call.
const never = math.MaxInt64

// events converts the operations for porcupine. It adds the expiry of leases, which no client observes, and drops
// operations that prove nothing. A drawing shows each operation without an end on a separate line, as if a separate
// client had called it.
func events(history []Operation) []porcupine.Operation {
	history = slices.Clone(history)
	slices.SortStableFunc(history, func(a, b Operation) int { return cmp.Compare(a.Call, b.Call) })
	lines := 0
	for _, o := range history {
		lines = max(lines, o.Client+1)
	}
	var all []porcupine.Operation
	add := func(o Operation, line int, end int64) {
		all = append(all, porcupine.Operation{ClientId: line, Input: o, Call: int64(o.Call), Return: end})
	}
	endless := func(o Operation) {
		add(o, lines, never)
		lines++
	}
	released := map[int]time.Duration{}
	lastTry := map[string]time.Duration{} // by key: the return of the last refused try that counts
	for i, o := range history {
		switch o.Event {
		case Released:
			released[o.Lease] = o.Return
		case Refused:
			if alone(history, i) {
				lastTry[o.Key] = o.Return
			}
		}
	}
	for i, o := range history {
		switch o.Event {
		case Acquired:
			add(o, o.Client, int64(o.Return))
			if end, ok := released[o.Lease]; o.Until != 0 && (!ok || end > o.Until) {
				endless(Operation{Event: expired, Key: o.Key, Lease: o.Lease, Call: max(o.Until, o.Call)})
			}
		case Failed:
			if o.Call <= lastTry[o.Key] { // only a later refused try can reveal that this acquire got the lock
				endless(o)
			}
		case Refused:
			if alone(history, i) {
				add(o, o.Client, int64(o.Return))
			}
		case Unclear:
			endless(o)
		default:
			add(o, o.Client, int64(o.Return))
		}
	}
	return all
}

// alone reports whether no other attempt for the key overlaps operation i.
func alone(history []Operation, i int) bool {
	for j, o := range history {
		attempt := o.Event == Acquired || o.Event == Failed || o.Event == Refused
		if j != i && attempt && o.Key == history[i].Key && o.Call <= history[i].Return && history[i].Call <= o.Return {
			return false
		}
	}
	return true
}

// Model is the kind of lock with which CheckHistory compares a history.
type Model int

const (
	// Mutex is a lock that at most one lease holds at a time and that only this lease can release.
	Mutex Model = iota
	// FencedMutex is a Mutex in which each lease has a larger token than all earlier leases.
	FencedMutex
)

// String returns the model's name as failures print it.
func (m Model) String() string {
	if m == FencedMutex {
		return "fenced mutex"
	}
	return "mutex"
}

// expired is the event that ends a lease at or after the end of its validity. No client observes it.
const expired Event = -1

// state is what a Model knows of a lock between two operations.
type state struct {
	lease int   // the lease that holds it, 0 for none
	maybe bool  // no lease is known to hold it, but a failed acquire may
	token int64 // the token granted last
}

// step reports whether an operation could have happened in state s, and returns the state after it.
//
// A failed acquire may hold the lock, so until the next successful acquire it may explain a refused try. An expired
// lease frees the lock only at the expired event. This event may happen later than the end of the lease's validity,
// because no client knows when Redis ends the lease.
func (m Model) step(s state, o Operation) (bool, state) {
	switch o.Event {
	case Acquired:
		if s.lease != 0 || m == FencedMutex && o.Token <= s.token {
			return false, s
		}
		return true, state{lease: o.Lease, token: o.Token}
	case Failed:
		s.maybe = s.maybe || s.lease == 0
		return true, s
	case Refused:
		return s.lease != 0 || s.maybe, s
	case Released:
		return s.lease == o.Lease, state{token: s.token}
	case Lost:
		return s.lease != o.Lease, s
	default: // Unclear, expired
		if s.lease == o.Lease {
			s.lease = 0
		}
		return true, s
	}
}

func (m Model) porcupine() porcupine.Model {
	return porcupine.Model{
		Partition: byKey,
		Init:      func() any { return state{} },
		Step: func(s, operation, _ any) (bool, any) {
			return m.step(s.(state), operation.(Operation))
		},
		DescribeOperation: func(operation, _ any) string { return operation.(Operation).String() },
		DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
	}
}

func byKey(history []porcupine.Operation) [][]porcupine.Operation {
	keys := map[string][]porcupine.Operation{}
	for _, o := range history {
		key := o.Input.(Operation).Key
		keys[key] = append(keys[key], o)
	}
	return slices.Collect(maps.Values(keys))
}

// String returns the operation as a drawing shows it.
func (o Operation) String() string {
	text := map[Event]string{
		Acquired: "acquire → lease %d", Failed: "acquire → failed, may hold", Refused: "try → held",
		Released: "release lease %d", Lost: "release lease %d → not held",
		Unclear: "release lease %d → failed, may be free",
		expired: "lease %d is no longer valid",
	}[o.Event]
	if o.Lease != 0 {
		text = fmt.Sprintf(text, o.Lease)
	}
	if o.Token != 0 {
		text += fmt.Sprintf(", token %d", o.Token)
	}
	if o.Until != 0 {
		text += fmt.Sprintf(", valid until %v", o.Until.Round(time.Microsecond))
	}
	return text
}
