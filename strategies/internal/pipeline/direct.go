package pipeline

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// direct decides whether a single caller sends its command in its own goroutine, because a switch to another goroutine
// would cost as much as the rest of the call. Only go-redis can end such a call early. A direct call is therefore
// allowed only if the client ends commands with their contexts, a connection is idle, and Redis replied quickly to the
// last exchange.
type direct struct {
	client *redis.Client // nil if direct calls are never allowed
	quick  bool          // Redis replied to the last exchange within soon

	term context.Context // bounds the calls that begin before half
	half time.Time
	stop context.CancelFunc // of term; never called, because term ends by its deadline
}

const (
	// cancelled is the longest time by which a direct call may outlast its context, because go-redis does not notice a
	// cancellation.
	cancelled = 200 * time.Millisecond
	// soon is the longest duration of an exchange after which a direct call is allowed.
	soon = cancelled / 4
)

func newDirect(client any) direct {
	single, is := client.(*redis.Client)
	if !is {
		return direct{}
	}
	if o := single.Options(); !o.ContextTimeoutEnabled || o.ReadTimeout <= 0 || o.WriteTimeout <= 0 {
		return direct{}
	}
	return direct{client: single}
}

// may reports whether a direct call is allowed now.
func (d *direct) may(pipelined bool) bool {
	if d.client == nil || !d.quick {
		return false
	}
	stats := d.client.PoolStats()
	if pipelined && stats.PipelineStats != nil {
		return stats.PipelineStats.IdleConns > 0
	}
	return stats.IdleConns > 0
}

// until is a context that has the values of the caller's context but ends with a shared term, because a separate
// context with a deadline for each call would cost a timer.
type until struct {
	context.Context // of the caller
	term            context.Context
	at              time.Time
}

// Deadline implements context.Context.
func (u until) Deadline() (time.Time, bool) { return u.at, true }

// Done implements context.Context.
func (u until) Done() <-chan struct{} { return u.term.Done() }

// Err implements context.Context.
func (u until) Err() error { return u.term.Err() }

// bounded returns the context of a direct call that begins now. The caller holds the Conn's mutex.
func (d *direct) bounded(ctx context.Context, now time.Time) context.Context {
	if !now.Before(d.half) {
		d.half = now.Add(cancelled / 2)
		d.term, d.stop = context.WithDeadline(context.Background(), now.Add(cancelled))
	}
	at, _ := d.term.Deadline()
	if end, ok := ctx.Deadline(); ok && end.Before(at) {
		at = end
	}
	return until{ctx, d.term, at}
}
