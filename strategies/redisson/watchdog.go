package redisson

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/internal/background"
	"github.com/lockbench/lockbench/strategies/internal/bounded"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
)

const (
	// renewalsAtOnce is the largest number of leases that one round trip renews.
	renewalsAtOnce = 256
	// mostBatches is the largest number of concurrent batches. Each uses a connection. A batch that takes longer than
	// batchPatience no longer counts.
	mostBatches = 4
	// batchPatience is the longest time for which a batch can delay other batches.
	batchPatience = time.Second
)

// watchdog renews the leases of a Locker every TTL/3, and reports expired leases as lost. One goroutine (run), which
// the first lease starts, schedules the renewals. This goroutine does not wait for replies of Redis: if the client
// ignores contexts, a batch can take as long as the client's timeouts. watch, look and forget do nothing on a nil
// watchdog.
type watchdog struct {
	client redis.UniversalClient
	ttl    time.Duration
	stop   context.CancelFunc
	ctx    context.Context
	tasks  background.Group // run, and the batches until batchPatience is over
	calls  bounded.Calls    // the batches
	turns  chan struct{}    // one for each batch under way
	sooner chan struct{}    // signals that first has become earlier; capacity 1

	mu      sync.Mutex
	started bool
	held    map[*lease]bool // the value is true while a renewal is under way
	first   time.Time       // when the first lease expires; zero if none is held
}

func newWatchdog(client redis.UniversalClient, ttl time.Duration) *watchdog {
	ctx, stop := context.WithCancel(context.Background())
	return &watchdog{
		client: client, ttl: ttl, ctx: ctx, stop: stop, held: map[*lease]bool{},
		turns: make(chan struct{}, mostBatches), sooner: make(chan struct{}, 1),
	}
}

func (w *watchdog) watch(held *lease) {
	if w == nil {
		return
	}
	w.mu.Lock()
	w.held[held] = false
	w.started = w.started || w.tasks.Go(w.run)
	w.mu.Unlock()
	w.look(held)
}

// look wakes the watchdog if held expires before every other lease. Otherwise the watchdog would report the loss of
// held too late.
func (w *watchdog) look(held *lease) {
	if w == nil {
		return
	}
	until := held.ValidUntil()
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, watched := w.held[held]; !watched || !w.first.IsZero() && !until.Before(w.first) {
		return
	}
	w.first = until
	select {
	case w.sooner <- struct{}{}:
	default:
	}
}

func (w *watchdog) forget(held *lease) {
	if w == nil {
		return
	}
	w.take(held)
}

// take removes a lease from the watchdog and reports whether the watchdog had it.
func (w *watchdog) take(held *lease) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, known := w.held[held]
	delete(w.held, held)
	return known
}

// close stops the watchdog. It waits at most two seconds for renewals that have got no reply.
func (w *watchdog) close() {
	w.stop()
	w.tasks.Close()
	w.calls.Close()
}

func (w *watchdog) run() {
	ticker := time.NewTicker(max(w.ttl/3, time.Millisecond))
	defer ticker.Stop()
	end := time.NewTimer(w.ttl)
	defer end.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-ticker.C:
			for some := range slices.Chunk(w.due(), renewalsAtOnce) {
				w.tasks.Go(func() { w.send(some) })
			}
		case <-w.sooner:
			end.Reset(w.rest())
		case <-end.C:
			w.report()
			end.Reset(w.rest())
		}
	}
}

// rest returns the time until the first lease expires, or the TTL if none is held.
func (w *watchdog) rest() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first.IsZero() {
		return w.ttl
	}
	return time.Until(w.first)
}

// report removes the leases that have expired and reports them as lost.
func (w *watchdog) report() {
	var ended []*lease
	now := time.Now()
	w.mu.Lock()
	w.first = time.Time{}
	for held := range w.held {
		until := held.ValidUntil()
		switch {
		case !now.Before(until):
			ended = append(ended, held)
			delete(w.held, held)
		case w.first.IsZero() || until.Before(w.first):
			w.first = until
		}
	}
	w.mu.Unlock()
	for _, held := range ended {
		held.lose()
	}
}

// due returns the leases without a renewal under way and marks them as being renewed.
func (w *watchdog) due() []*lease {
	w.mu.Lock()
	defer w.mu.Unlock()
	leases := make([]*lease, 0, len(w.held))
	for held, busy := range w.held {
		if !busy {
			w.held[held] = true
			leases = append(leases, held)
		}
	}
	return leases
}

// renewed records that no renewal of these leases is under way any more.
func (w *watchdog) renewed(leases []*lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, held := range leases {
		if _, watched := w.held[held]; watched {
			w.held[held] = false
		}
	}
}

// send renews a batch of leases as soon as fewer than mostBatches batches are under way. It returns after batchPatience
// at the latest, even if the batch is still waiting for replies.
func (w *watchdog) send(leases []*lease) {
	select {
	case w.turns <- struct{}{}:
		defer func() { <-w.turns }()
	case <-w.ctx.Done():
		return
	}
	ctx, cancel := context.WithTimeout(w.ctx, batchPatience)
	defer cancel()
	_ = w.calls.Do(ctx, func() error { w.renew(leases); return nil })
}

// renew renews a batch of leases in one round trip. It reports a lease as lost if Redis no longer has it.
func (w *watchdog) renew(leases []*lease) {
	defer w.renewed(leases)
	ctx, cancel := context.WithTimeout(w.ctx, w.ttl/3)
	defer cancel()
	replies, answers := make([]*redis.Cmd, len(leases)), make([]func(done, open bool), len(leases))
	// The loop below checks the error of every reply. The pipeline sends EVAL, because it cannot fall back from EVALSHA if
	// the script is not cached.
	_, _ = w.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, held := range leases {
			ttl := held.renewal()
			answers[i] = held.extending(ttl)
			once := indeterminate.ScriptsOnce{Scripter: pipe}
			replies[i] = renewScript.Eval(ctx, once, []string{held.key},
				ttl.Milliseconds(), held.owner, held.holder != nil)
		}
		return nil
	})
	for i, held := range leases {
		renewed, err := redisson.Flag(replies[i])
		answers[i](renewed, indeterminate.MayHaveRun(err))
		if err == nil && !renewed && w.take(held) { // if take returns false, the lease was released in between
			held.lose()
		}
	}
}
