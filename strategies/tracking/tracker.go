package tracking

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/strategies/goredis"
)

const (
	// channel is where Redis tells a RESP2 connection of changes.
	channel = "__redis__:invalidate"
	// grace is how long a look may take before its connection counts as dead.
	grace = 5 * time.Second
)

// tracker looks at the locks that a Locker's callers wait for, and hears of their changes.
//
// The first use starts two goroutines: one looks, at many locks in one round trip, and one
// listens.
type tracker struct {
	ttl      time.Duration
	looking  redis.UniversalClient // with one connection, whose looks leave marks
	hearing  redis.UniversalClient // with no connection but the subscription's
	pubsub   *redis.PubSub
	listener atomic.Int64 // the id of the connection that hears of changes
	target   atomic.Int64 // the id that the looking connection redirects to
	stop     context.CancelFunc
	ctx      context.Context
	done     sync.WaitGroup
	denied   chan error    // the user may not subscribe
	ready    chan struct{} // closed when Redis has confirmed the first subscription

	mu      sync.Mutex
	started bool
	groups  map[string]*group   // of the locks that somebody waits for
	queue   map[string]struct{} // those to look at
	signal  chan struct{}       // queue is not empty; capacity 1
	next    time.Time           // no group's bound is earlier; zero means that there is no bound
}

func newTracker(node goredis.Node, ttl time.Duration) *tracker {
	ctx, stop := context.WithCancel(context.Background())
	t := &tracker{
		ttl:    ttl,
		ctx:    ctx,
		stop:   stop,
		denied: make(chan error, 1),
		ready:  make(chan struct{}),
		groups: map[string]*group{},
		queue:  map[string]struct{}{},
		signal: make(chan struct{}, 1),
	}
	t.looking, t.hearing = t.dialLooking(node), t.dialHearing(node)
	t.pubsub = t.hearing.Subscribe(ctx) // opens no connection yet
	return t
}

// connect opens both connections ahead of the first waiter.
func (t *tracker) connect(ctx context.Context) error {
	if err := t.pubsub.Ping(ctx); err != nil {
		return fmt.Errorf("open the subscription connection: %w", err)
	}
	t.mu.Lock()
	t.start()
	t.mu.Unlock()
	select {
	case <-t.ready:
	case err := <-t.denied:
		return fmt.Errorf("subscribe to %s: %w", channel, err)
	case <-ctx.Done():
		return fmt.Errorf("subscribe to %s: %w", channel, ctx.Err())
	}
	if err := t.looking.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("open the tracked connection: %w", err)
	}
	return nil
}

// start starts the goroutines. The caller holds mu.
func (t *tracker) start() {
	if !t.started {
		t.started = true
		t.done.Go(t.listen)
		t.done.Go(t.look)
	}
}

func (t *tracker) close() error {
	t.mu.Lock()
	t.stop() // from here on no goroutine is started
	t.mu.Unlock()
	err := errors.Join(t.pubsub.Close(), t.hearing.Close(), t.looking.Close())
	t.done.Wait()
	return err
}

// listen hears of changes. go-redis reconnects and subscribes again by itself,
// within Receive.
func (t *tracker) listen() {
	// If it fails, Receive tries again.
	_ = t.pubsub.Subscribe(t.ctx, channel)
	var confirm sync.Once
	for failures := 0; ; {
		message, err := t.pubsub.Receive(t.ctx)
		if t.ctx.Err() != nil {
			return
		}
		if redis.HasErrorPrefix(err, "NOPERM") {
			select { // for a caller that waits for the subscription
			case t.denied <- err:
			default:
			}
		}
		if err != nil {
			// The connection broke; or all keys have changed at once (FLUSHALL), which
			// go-redis cannot read.
			t.wantAll()
			if failures++; failures > 1 { // it did not come back at once
				t.outage(err, failures == 2)
				pause.Rest(t.ctx.Done(), failures)
			}
			continue
		}
		failures = 0
		switch message := message.(type) {
		case *redis.Message:
			for _, name := range message.PayloadSlice {
				t.changed(name)
			}
		case *redis.Subscription:
			confirm.Do(func() { close(t.ready) })
			t.wantAll() // changes before that were not told
		}
	}
}

// look looks at the queued locks, and wakes waiters whose bound is over.
func (t *tracker) look() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for failures := 0; ; {
		timer.Stop()
		if next := t.overdue(); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
		select {
		case <-t.signal:
		case <-timer.C:
			continue
		case <-t.ctx.Done():
			return
		}
		if !t.subscribed() {
			continue // once it is, all locks are looked at
		}
		err := t.ask(t.wanted())
		switch {
		case t.ctx.Err() != nil:
			return
		case err == nil:
			failures = 0
		default:
			t.wantAll()
			if failures++; failures > 1 { // the connection did not come back at once
				t.outage(fmt.Errorf("look at the locks: %w", err), failures == 2)
				pause.Rest(t.ctx.Done(), failures)
			}
		}
	}
}

func (t *tracker) subscribed() bool {
	select {
	case <-t.ready:
		return true
	default:
		return false
	}
}

// outage tells waiters that nothing will be heard for a while: they try once, and give up if
// the server refuses the looks.
func (t *tracker) outage(err error, first bool) {
	_, refused := errors.AsType[redis.Error](err)
	switch {
	case refused && !strings.Contains(err.Error(), "redirect to does not exist"):
		t.wakeAll(err)
	case first: // also if only the listener has gone: it is about to come back
		t.wakeAll(nil)
	}
}
