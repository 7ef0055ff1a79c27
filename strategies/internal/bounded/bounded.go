// Package bounded ends a call of go-redis with the caller's context.
//
// go-redis does not end a command with its context unless the client has ContextTimeoutEnabled, and with it neither the
// greeting of a new connection nor the first look at a cluster. A service's client has go-redis's defaults: a command
// then returns after ReadTimeout, once for each try. A call that ends early leaves its command with go-redis, and Redis
// may still carry it out.
package bounded

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
)

// Calls are the calls of one Locker that may outlast their callers. The zero value is ready.
type Calls struct {
	mu      sync.Mutex
	running int
	idle    chan struct{} // closed when no call runs; nil without a Close that waits
}

// Do calls send and returns its error. If there is none 50ms after the end of ctx, Do returns an error that says so,
// and send goes on: it must not write what the caller reads. The error is neither a redis.Error nor a network error,
// because the fate of the command is unknown. If ctx has ended before, Do returns its error without calling send.
func (c *Calls) Do(ctx context.Context, send func() error) error {
	_, err := Get(ctx, c, func() (struct{}, error) { return struct{}{}, send() })
	return err
}

// Get is Calls.Do for a call with a result. The result is the zero value if there is no answer in time.
func Get[T any](ctx context.Context, c *Calls, send func() (T, error)) (got T, err error) {
	if ctx.Done() == nil {
		return send()
	}
	if err := ctx.Err(); err != nil {
		return got, err
	}
	var sent struct {
		got T
		err error
	}
	over := make(chan struct{})
	c.Go(func() {
		defer close(over)
		sent.got, sent.err = send()
	})
	select {
	case <-over:
		return sent.got, sent.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-over:
		return sent.got, sent.err
	case <-timer.C:
		return got, unanswered{because(context.Cause(ctx)), over}
	}
}

// grace is how long a call waits for its answer after the end of its context. A Redis that works answers in that time,
// and nothing is left to undo.
const grace = 50 * time.Millisecond

// Over returns a channel that is closed when the call that has ended early with err is over; nil if err is of another
// kind.
func Over(err error) <-chan struct{} {
	if early, ok := errors.AsType[unanswered](err); ok {
		return early.over
	}
	return nil
}

// Go runs a call that has no caller.
func (c *Calls) Go(call func()) {
	c.mu.Lock()
	c.running++
	c.mu.Unlock()
	go func() {
		defer c.end()
		call()
	}()
}

func (c *Calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running--; c.running == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// Patience is how long Close waits.
const Patience = 2 * time.Second

// Close waits until the calls have ended, for at most two seconds. A call that waits for a connection without a
// ReadTimeout ends when the client is closed. Later calls still work.
func (c *Calls) Close() { c.CloseBy(time.Now().Add(Patience)) }

// CloseBy is Close with a deadline.
func (c *Calls) CloseBy(deadline time.Time) {
	c.mu.Lock()
	if c.running == 0 {
		c.mu.Unlock()
		return
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.mu.Unlock()
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
}

// Unanswered returns the error of a command whose caller no longer waits for the answer, for that reason. errors.Is
// finds the reason, but errors.As finds no redis.Error and no *net.OpError in it: a context may have ended with one,
// and it would say what became of the command. It finds no strategies.ErrHeld either, with which package lock ends a
// Wait: without an answer it is not known whether another has the lock.
func Unanswered(reason error) error { return unanswered{because(reason), nil} }

func because(reason error) error {
	if errors.Is(reason, strategies.ErrHeld) {
		reason = context.DeadlineExceeded
	}
	return fmt.Errorf("no answer of Redis: %w", reason)
}

type unanswered struct {
	error
	over <-chan struct{} // nil if nothing is known of the call
}

// MayHaveRun says what package indeterminate asks.
func (unanswered) MayHaveRun() bool { return true }

// Is finds the reason, unless the question is for an answer of Redis.
func (u unanswered) Is(target error) bool {
	_, answer := target.(redis.Error)
	return !answer && errors.Is(u.error, target)
}
