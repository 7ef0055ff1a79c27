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

// Open does nothing, because polling needs no subscription connection.
func (*polling) Open(context.Context) error { return nil }

// Join returns at once with a Registration whose backoff starts at its shortest sleep.
func (l *polling) Join(context.Context, redisson.Topic, time.Duration) (redisson.Registration, error) {
	return poller{line: l, next: backoff.Sleeps(rand.Int64N)}, nil
}

// Close stops the timers of the sleeping waiters.
func (l *polling) Close() error {
	l.sleepers.Close()
	return nil
}

// poller is the redisson.Registration of one polling waiter, with its backoff.
type poller struct {
	line *polling
	next func() time.Duration
}

// Park sleeps for the next duration of the backoff. It ignores the limit, because an RSpinLock does not use the
// holder's PTTL.
func (p poller) Park(ctx context.Context, _ time.Duration) error {
	p.line.sleepers.Sleep(ctx.Done(), p.next())
	return strategies.WaitEnded(ctx)
}

// Leave has no effect, because there are no wake-ups to pass on.
func (poller) Leave(bool) {}
