package redisson

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
	"github.com/lockbench/lockbench/strategies/polled"
)

// backoff is the default backoff of an RSpinLock.
var backoff = polled.SpinOptions{Backoff: polled.Redisson, Base: time.Millisecond, Cap: 128 * time.Millisecond}

// polling is a redisson.Notifier whose waiters receive no messages and sleep between their tries.
type polling struct{ sleepers pause.Sleepers }

// Open has nothing to open.
func (*polling) Open(context.Context) error { return nil }

// Join returns a Registration with a new backoff.
func (l *polling) Join(context.Context, redisson.Topic, time.Duration) (redisson.Registration, error) {
	return poller{line: l, next: backoff.Sleeps(rand.Int64N)}, nil
}

// Close stops the timers of the sleeping waiters.
func (l *polling) Close() error {
	l.sleepers.Close()
	return nil
}

// poller is a redisson.Registration.
type poller struct {
	line *polling
	next func() time.Duration
}

// Park sleeps for the next time of the backoff, regardless of the holder's remaining time.
func (p poller) Park(ctx context.Context, _ time.Duration) error {
	p.line.sleepers.Sleep(ctx.Done(), p.next())
	return strategies.WaitEnded(ctx)
}

// Leave has no effect, because there are no wake-ups to pass on.
func (poller) Leave(bool) {}
