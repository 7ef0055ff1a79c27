package redisson

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/strategies"
)

// RSpinLock is the hash of an RLock, without a channel: a release is told to nobody.
type RSpinLock struct{ RLock }

// Release publishes nothing.
func (RSpinLock) Release(ctx context.Context, client redis.Scripter, held *Lease) (freed bool, err error) {
	return giveUpHold(ctx, client, held)
}

// Polling is a Line whose waiters are told nothing and sleep between their tries.
type Polling struct {
	sleeps   func() func() time.Duration
	sleepers pause.Sleepers
}

// NewPolling returns a Line. sleeps is called for each waiter; what it returns gives the
// waiter's next sleep.
func NewPolling(sleeps func() func() time.Duration) *Polling { return &Polling{sleeps: sleeps} }

// Open has nothing to open.
func (*Polling) Open(context.Context) error { return nil }

// Join begins a waiter's sleeps.
func (l *Polling) Join(context.Context, Topic) (Place, error) {
	return poller{line: l, next: l.sleeps()}, nil
}

// Close frees what the sleepers used.
func (l *Polling) Close() error {
	l.sleepers.Close()
	return nil
}

type poller struct {
	line *Polling
	next func() time.Duration
}

// Park sleeps as the backoff says, however long the holder has left.
func (p poller) Park(ctx context.Context, _ time.Duration) error {
	p.line.sleepers.Sleep(ctx.Done(), p.next())
	return strategies.WaitEnded(ctx)
}

// Leave has nothing to pass on.
func (poller) Leave(bool) {}
