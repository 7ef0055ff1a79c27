package pipeline

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// direct says whether a caller that is alone sends for itself: another goroutine would cost as much as the rest.
// Nothing can end such a call but go-redis. So it needs a client whose commands end with their contexts, a connection
// that is there, and a Redis that has answered the last exchange soon.
type direct struct {
	client *redis.Client // nil where no caller sends for itself
	quick  bool          // the last exchange was answered soon

	term context.Context // in which calls end that begin before half
	half time.Time
	stop context.CancelFunc // of term, which ends by itself
}

const (
	// cancelled is how long a caller that sends for itself may outlast its context: go-redis does not see its end.
	cancelled = 200 * time.Millisecond
	// soon is how long an exchange takes at most after which a caller may send for itself.
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

// may says whether a caller may send for itself now.
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

// until is a context of go-redis's: it has the values of a caller's, and ends with a term. A context of its own for
// each call would cost a timer.
type until struct {
	context.Context // of the caller
	term            context.Context
	at              time.Time
}

// Deadline is a context.Context's.
func (u until) Deadline() (time.Time, bool) { return u.at, true }

// Done is a context.Context's.
func (u until) Done() <-chan struct{} { return u.term.Done() }

// Err is a context.Context's.
func (u until) Err() error { return u.term.Err() }

// bounded returns the context of a call that begins now. The Conn's mutex is held.
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
