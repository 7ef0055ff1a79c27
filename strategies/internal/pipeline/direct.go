package pipeline

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// direct decides whether a single caller may send its command in its own goroutine (a direct call). A direct call
// avoids the switch to another goroutine, which would cost as much as everything else in the call. Only go-redis can
// end a direct call early. A direct call is therefore allowed only if the client ends commands with their contexts, a
// connection is idle, and Redis replied quickly to the last exchange.
type direct struct {
	client *redis.Client // nil if direct calls are never allowed
	quick  bool          // Redis replied to the last exchange within soon

	term context.Context // bounds the calls that begin before half
	half time.Time
	stop context.CancelFunc // of term; never called, because term ends by its deadline
}

const (
	// cancelled is the longest time by which a direct call may outlast a cancelled context. go-redis notices a deadline,
	// but not a cancellation.
	cancelled = 200 * time.Millisecond
	// A direct call is allowed only if the last exchange took less than soon.
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

// may reports whether a direct call is allowed now. pipelined is true for a call that sends two commands in a pipeline.
// go-redis may have a separate pool of connections for pipelines.
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

// until is the context of a direct call. It has the values of the caller's context. Several direct calls end with the
// same context, the term, because a timer for each call would be slow.
type until struct {
	context.Context // of the caller
	term            context.Context
	at              time.Time
}

// Deadline returns the caller's deadline or the end of the shared term, whichever is earlier.
func (u until) Deadline() (time.Time, bool) { return u.at, true }

// Done returns a channel that is closed at the end of the shared term.
func (u until) Done() <-chan struct{} { return u.term.Done() }

// Err returns nil until the shared term ends, and then the error of the term.
func (u until) Err() error { return u.term.Err() }

// bounded returns the context of a direct call that begins now. The returned context ends at most 200 ms later. The
// caller holds the Conn's mutex.
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
