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
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/internal/background"
)

// Calls are the calls of one Locker that may outlast their callers. The zero value is ready.
type Calls struct{ tasks background.Group }

// Do calls send and returns its error. If ctx ends first, Do returns an error at once that says so, and send goes on: it
// must not write what the caller reads. The error is neither a redis.Error nor a network error, because the fate of
// the command is unknown. After Close, Do calls send and waits for it.
func (c *Calls) Do(ctx context.Context, send func() error) error {
	if ctx.Done() == nil {
		return send()
	}
	over := make(chan error, 1)
	if !c.tasks.Go(func() { over <- send() }) {
		return send()
	}
	select {
	case err := <-over:
		return err
	case <-ctx.Done():
	}
	select { // the answer may have come at the same moment
	case err := <-over:
		return err
	default:
		return Unanswered(context.Cause(ctx))
	}
}

// patience is how long Close waits.
const patience = 2 * time.Second

// Close waits until the calls have ended, for two seconds at most. A call that waits for a connection without a
// ReadTimeout ends when the client is closed.
func (c *Calls) Close() {
	over := make(chan struct{})
	go func() {
		c.tasks.Close()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(patience):
	}
}

// Unanswered returns the error of a command whose caller no longer waits for the answer, for that reason. errors.Is
// finds the reason, but errors.As finds no redis.Error and no *net.OpError in it: a context may have ended with one,
// and it would say what became of the command.
func Unanswered(reason error) error { return unanswered{fmt.Errorf("no answer of Redis: %w", reason)} }

type unanswered struct{ error }

// MayHaveRun says what package indeterminate asks.
func (unanswered) MayHaveRun() bool { return true }

// Is finds the reason, unless the question is for an answer of Redis.
func (u unanswered) Is(target error) bool {
	_, answer := target.(redis.Error) //nolint:errorlint // what errors.Is compares with
	return !answer && errors.Is(u.error, target)
}
