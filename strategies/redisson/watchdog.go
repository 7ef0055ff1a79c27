package redisson

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/background"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
)

// watchdog renews the leases that a Locker holds, every TTL/3, in one goroutine that the
// first lease starts. watch and forget do nothing on a nil watchdog.
type watchdog struct {
	client goredis.Client
	ttl    time.Duration
	stop   context.CancelFunc
	ctx    context.Context
	tasks  background.Group

	mu      sync.Mutex
	started bool
	held    map[*lease]struct{}
}

func newWatchdog(client goredis.Client, ttl time.Duration) *watchdog {
	ctx, stop := context.WithCancel(context.Background())
	return &watchdog{client: client, ttl: ttl, ctx: ctx, stop: stop, held: map[*lease]struct{}{}}
}

func (w *watchdog) watch(held *lease) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[held] = struct{}{}
	w.started = w.started || w.tasks.Go(w.run)
}

func (w *watchdog) forget(held *lease) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held, held)
}

func (w *watchdog) watches(held *lease) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.held[held]
	return ok
}

func (w *watchdog) close() {
	w.stop()
	w.tasks.Close()
}

func (w *watchdog) run() {
	ticker := time.NewTicker(max(w.ttl/3, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-ticker.C:
		}
		w.mu.Lock()
		held := slices.Collect(maps.Keys(w.held))
		w.mu.Unlock()
		for some := range slices.Chunk(held, 256) { // one round trip each
			w.renew(some)
		}
	}
}

// renew renews some leases. It gives up a lease that is lost, or that could not be renewed in
// time.
func (w *watchdog) renew(leases []*lease) {
	ctx, cancel := context.WithTimeout(w.ctx, w.ttl/3)
	defer cancel()
	replies, answers := make([]*redis.Cmd, len(leases)), make([]func(done, open bool), len(leases))
	// Every reply is looked at below. EVAL, because a pipeline cannot fall back if the script
	// is not cached.
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
		renewed, err := replies[i].Int()
		answers[i](renewed == 1, indeterminate.MayHaveRun(err))
		switch {
		case err == nil && renewed == 1, !w.watches(held): // or released meanwhile
		case err == nil || time.Now().After(held.ValidUntil()):
			w.forget(held)
			held.lose()
		}
	}
}
