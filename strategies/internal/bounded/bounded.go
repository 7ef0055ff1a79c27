// Package bounded makes calls to go-redis return when the caller's context ends.
//
// Unless the option ContextTimeoutEnabled is set, go-redis does not end a command when its context ends. Even with this
// option, go-redis ends neither the handshake of a new connection nor the first load of a cluster's slots. A service's
// client usually has go-redis's defaults, with which each try of a command takes up to ReadTimeout. If a call returns
// early, go-redis continues with the command, and Redis may still execute it.
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

// Calls tracks the calls of one Locker that may outlast their callers, so that Close can wait for them. The zero value
// is ready for use.
type Calls struct {
	mu      sync.Mutex
	running int
	idle    chan struct{} // closed when no call is running; nil unless a Close is waiting
}

// Do calls send and returns its error. If send is still running 50 ms after the end of ctx, Do returns an error and
// send continues, so send must not write variables that the caller reads. This error is neither a redis.Error nor a
// network error, because it is unknown whether Redis executes the command. If ctx has already ended, Do returns ctx's
// error without calling send.
func (c *Calls) Do(ctx context.Context, send func() error) error {
	_, err := Get(ctx, c, func() (struct{}, error) { return struct{}{}, send() })
	return err
}

// Get is like Calls.Do for a call with a result. If Get returns before send does, the result is the zero value.
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

// grace is how long a call still waits for its reply after its context has ended. A working Redis usually replies
// within this time, so few commands have an unknown result and must be undone.
const grace = 50 * time.Millisecond

// Over takes the error of a call of Do or Get that returned before its send, and returns a channel that is closed when
// send returns. For any other error, Over returns nil.
func Over(err error) <-chan struct{} {
	if early, ok := errors.AsType[unanswered](err); ok {
		return early.over
	}
	return nil
}

// Go runs call in a goroutine. Close waits for call as it does for the calls of Do.
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

// Patience is the longest time for which Close waits for calls.
const Patience = 2 * time.Second

// Close waits until the running calls have ended, for at most two seconds: on a connection without a ReadTimeout, a
// call may end only when the client is closed. Calls made after Close still work.
func (c *Calls) Close() { c.CloseBy(time.Now().Add(Patience)) }

// CloseBy waits like Close, but until the given deadline at the latest.
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

// Unanswered returns the error of a command whose caller has stopped waiting for the reply; reason says why. errors.Is
// finds the reason in the error. errors.As finds neither a redis.Error nor a *net.OpError, even if the reason is one,
// because such an error would imply whether Redis has executed the command. If the reason is strategies.ErrHeld, with
// which package lock ends a Wait, errors.Is finds context.DeadlineExceeded instead, because without a reply it is
// unknown whether the lock is held.
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

// MayHaveRun returns true, because Redis may have executed the command. The function indeterminate.MayHaveRun calls
// this method.
func (unanswered) MayHaveRun() bool { return true }

// Is reports whether errors.Is finds target in the reason. It returns false if target is an error that only a reply of
// Redis can contain.
func (u unanswered) Is(target error) bool {
	_, answer := target.(redis.Error)
	return !answer && errors.Is(u.error, target)
}
