// Package bounded ends a call of go-redis with the caller's context.
//
// Unless the option ContextTimeoutEnabled is set, go-redis does not end a command with its context. Even with this
// option it ends neither the handshake of a new connection nor the first load of a cluster's slots. A service's client
// usually has go-redis's defaults, with which each try of a command takes up to ReadTimeout. A call that ends early
// leaves its command with go-redis, and Redis may still execute it.
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
	idle    chan struct{} // closed when no call is running; nil unless a Close is waiting
}

// Do calls send and returns its error. If send has not returned 50 ms after the end of ctx, Do returns an error and
// send continues, so send must not write variables that the caller reads. The error is neither a redis.Error nor a
// network error, because it is unknown whether Redis executes the command. If ctx has already ended, Do returns its
// error without calling send.
func (c *Calls) Do(ctx context.Context, send func() error) error {
	_, err := Get(ctx, c, func() (struct{}, error) { return struct{}{}, send() })
	return err
}

// Get is Calls.Do for a call with a result. If send does not return in time, the result is the zero value.
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

// grace is how long a call waits for its reply after the end of its context. A working Redis usually replies within
// this time, and then nothing needs to be undone.
const grace = 50 * time.Millisecond

// Over returns a channel that is closed when send returns in the call that ended early with err. It returns nil if err
// does not come from such a call.
func Over(err error) <-chan struct{} {
	if early, ok := errors.AsType[unanswered](err); ok {
		return early.over
	}
	return nil
}

// Go runs a call in a goroutine. Close waits for it.
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

// Patience is the longest time that Close waits.
const Patience = 2 * time.Second

// Close waits until the calls have ended, for at most two seconds. A call on a connection without a ReadTimeout may end
// only when the client is closed. Later calls still work.
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

// Unanswered returns the error of a command whose caller stopped waiting for the reply for the given reason. errors.Is
// finds the reason. errors.As finds no redis.Error and no *net.OpError in it, even if the reason is one: these would
// imply whether Redis has executed the command, which is unknown. errors.Is does not find strategies.ErrHeld either,
// the cause with which package lock ends a Wait, because without a reply it is unknown whether the lock is held.
func Unanswered(reason error) error { return unanswered{because(reason), nil} }

func because(reason error) error {
	if errors.Is(reason, strategies.ErrHeld) {
		reason = context.DeadlineExceeded
	}
	return fmt.Errorf("no reply from Redis: %w", reason)
}

type unanswered struct {
	error
	over <-chan struct{} // see Over
}

// MayHaveRun makes indeterminate.MayHaveRun return true for this error.
func (unanswered) MayHaveRun() bool { return true }

// Is finds the reason, unless target is an error that only Redis can report.
func (u unanswered) Is(target error) bool {
	_, answer := target.(redis.Error)
	return !answer && errors.Is(u.error, target)
}
