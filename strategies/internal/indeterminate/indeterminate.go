// Package indeterminate is about commands that ended without an answer, which Redis may or may not have
// carried out, and sends those of scripts only once.
package indeterminate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// patience bounds a clean-up. It is far more than one round trip, because ten thousand
// waiters may be cancelled at once.
const patience = 5 * time.Second

// MayHaveRun says whether a command that returned err may have been carried out
// all the same, because it was sent and no reply came.
//
// Errors of a connection come after sending, but for those of a dial. All others come before: from the pool, from the
// client's Limiter, its credentials or its OnConnect. A plain context error comes from the wait for a connection. (A
// client with retries may also return it between two tries; the lock then frees by its TTL.)
func MayHaveRun(err error) bool {
	if err == nil { // before anything is allocated
		return false
	}
	var known interface{ MayHaveRun() bool }
	var reply redis.Error
	var network *net.OpError
	switch {
	case errors.As(err, &known):
		return known.MayHaveRun()
	case errors.As(err, &reply):
		return false
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted), errors.Is(err, redis.ErrClosed):
		return false
	case errors.As(err, &network) && network.Op == "dial":
		return false
	// Not errors.Is: a network error that wraps one of them came after sending.
	case err == context.Canceled || err == context.DeadlineExceeded: //nolint:errorlint // see above
		return false
	}
	var transport net.Error
	return errors.As(err, &transport) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		strings.HasPrefix(err.Error(), "redis: ") // go-redis cannot read the reply
}

// notSent is the error of a command that was not sent.
type notSent struct{ error }

func (e notSent) Unwrap() error  { return e.error }
func (notSent) MayHaveRun() bool { return false }

// NotSent returns err as the error of a command that was not sent: MayHaveRun is false for it.
func NotSent(err error) error { return notSent{err} }

// Because returns an error for which errors.Is(err, ctx.Err()) holds if ctx ended the
// command: otherwise a socket's deadline hides the context's.
func Because(ctx context.Context, err error) error {
	cause := ctx.Err()
	if deadline, ok := ctx.Deadline(); ok && cause == nil && isTimeout(err) && !time.Now().Before(deadline) {
		cause = context.DeadlineExceeded // the context's own timer is late
	}
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// Settle returns a context for the clean-up of what an ended ctx has left undone.
func Settle(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), patience)
}

// Once is a command that a client does not send again, whatever its MaxRetries and MaxRedirects
// are: the answer to the second would hide that the first may still arrive. (It is sent again if
// a cluster's node has not carried it out because the key has moved.)
type Once struct{ redis.Cmder }

// NoRetry forbids it.
func (Once) NoRetry() bool { return true }

// ScriptsOnce is a client or a pipeline that sends the commands of scripts Once.
type ScriptsOnce struct{ Scripter }

// Scripter is a redis.UniversalClient or a redis.Pipeliner.
type Scripter interface {
	redis.Scripter
	Process(ctx context.Context, cmd redis.Cmder) error
}

// Eval runs a script by its source.
func (c ScriptsOnce) Eval(ctx context.Context, source string, keys []string, args ...any) *redis.Cmd {
	return c.run(ctx, "eval", source, keys, args)
}

// EvalSha runs a script by its digest.
func (c ScriptsOnce) EvalSha(ctx context.Context, digest string, keys []string, args ...any) *redis.Cmd {
	return c.run(ctx, "evalsha", digest, keys, args)
}

func (c ScriptsOnce) run(ctx context.Context, command, script string, keys []string, args []any) *redis.Cmd {
	cmd := Script(ctx, command, script, keys, args)
	_ = c.Process(ctx, Once{cmd}) // the command has its error
	return cmd
}

// Script returns the command that runs a script: eval with its source, or evalsha with its digest.
func Script(ctx context.Context, command, script string, keys []string, args []any) *redis.Cmd {
	words := make([]any, 0, 3+len(keys)+len(args))
	words = append(words, command, script, len(keys))
	for _, key := range keys {
		words = append(words, key)
	}
	cmd := redis.NewCmd(ctx, append(words, args...)...)
	if len(keys) > 0 {
		cmd.SetFirstKeyPos(3) // by the key a cluster finds the node
	}
	return cmd
}
