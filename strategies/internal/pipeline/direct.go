package pipeline

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// direct decides whether a single caller sends its command itself, because another goroutine would cost as much as
// the rest of the call. Only go-redis can end such a call. So it needs a client whose commands end with their
// contexts, an idle connection, and a Redis that answered the last exchange quickly.
type direct struct {
	client *redis.Client // nil if no caller may send itself
	quick  bool          // the last exchange was answered soon

	term context.Context // the context of calls that begin before the time half
	half time.Time
	stop context.CancelFunc // of term, which ends by itself
}

const (
	// cancelled is the longest time by which a caller that sends itself may outlast its context, because go-redis does
	// not notice a cancellation.
	cancelled = 200 * time.Millisecond
	// soon is the longest duration of an exchange after which a caller may send itself.
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

// may reports whether a caller may send itself now.
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

// until is a context with the values of the caller's context that ends with a term. A separate context with a
// deadline for each call would cost a timer.
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

// bounded returns the context of a call that begins now. The caller holds the Conn's mutex.
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
