package pipeline

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// direct says whether a caller that is alone sends for itself: another goroutine would cost as much as the rest. Such a
// call ends when the deadline of its connection does. So it needs a client whose commands have the deadlines of their
// contexts, a connection that is there, and a Redis that has answered lately.
type direct struct {
	client *redis.Client // nil where no caller sends for itself
	most   time.Duration
	failed time.Time // when a call last got no answer
}

// cancelled is how long a caller that sends for itself may outlast its context: go-redis does not see its end.
const cancelled = 250 * time.Millisecond

func newDirect(client any, most time.Duration) direct {
	single, is := client.(*redis.Client)
	if !is {
		return direct{}
	}
	if o := single.Options(); !o.ContextTimeoutEnabled || o.ReadTimeout <= 0 || o.WriteTimeout <= 0 {
		return direct{}
	}
	return direct{client: single, most: most}
}

// may says whether a caller may send for itself now.
func (d *direct) may(now time.Time, pipelined bool) bool {
	if d.client == nil || now.Sub(d.failed) < d.most {
		return false
	}
	stats := d.client.PoolStats()
	if pipelined && stats.PipelineStats != nil {
		return stats.PipelineStats.IdleConns > 0
	}
	return stats.IdleConns > 0
}

// until is a context that has a deadline for go-redis, and no timer.
type until struct {
	context.Context
	at time.Time
}

// Deadline is a context.Context's.
func (u until) Deadline() (time.Time, bool) { return u.at, true }

// bounded returns the context of a call that begins now: it keeps the values of its caller's.
func (d *direct) bounded(ctx context.Context, now time.Time) context.Context {
	at := now.Add(d.most)
	if ctx.Done() != nil {
		at = now.Add(min(d.most, cancelled))
	}
	if end, ok := ctx.Deadline(); ok && end.Before(at) {
		at = end
	}
	return until{context.WithoutCancel(ctx), at}
}
