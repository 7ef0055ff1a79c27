// Package indeterminate finds out from a command's error whether Redis may have executed the command. It also makes
// go-redis send the commands of scripts only once.
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

// patience is how long a context of Settle lasts. It is much longer than a round trip, because ten thousand waiters may
// be cancelled at once.
const patience = 5 * time.Second

// MayHaveRun reports whether Redis may have executed the command that returned err. This is so if the command was sent
// and no reply arrived.
//
// All connection errors except dial errors occur after the command was sent. All other errors occur before it was sent:
// in the pool, the client's Limiter, its credentials or its OnConnect. A plain context error occurs while the client
// waits for a connection. (A client with retries may also return a plain context error between two tries. If the first
// try has taken the lock, the lock stays taken until its TTL expires.)
func MayHaveRun(err error) bool {
	if err == nil { // checked first, because this path must not allocate
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
	// These errors are compared without errors.Is, because a network error that wraps one of them occurred after the
	// command was sent.
	case err == context.Canceled || err == context.DeadlineExceeded: //nolint:errorlint // see above
		return false
	}
	var transport net.Error
	return errors.As(err, &transport) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		strings.HasPrefix(err.Error(), "redis: ") // go-redis cannot read the reply
}

type notSent struct{ error }

func (e notSent) Unwrap() error  { return e.error }
func (notSent) MayHaveRun() bool { return false }

// NotSent marks err as the error of a command that was not sent, so that MayHaveRun returns false for it.
func NotSent(err error) error { return notSent{err} }

// Because returns err, and adds ctx's error if ctx has ended. go-redis derives the deadline of a socket from ctx, and
// the socket's timeout error alone would hide that ctx has ended.
func Because(ctx context.Context, err error) error {
	cause := ctx.Err()
	if deadline, ok := ctx.Deadline(); ok && cause == nil && isTimeout(err) && !time.Now().Before(deadline) {
		cause = context.DeadlineExceeded // the deadline has passed, but the context's timer has not fired yet
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

// Settle returns a context for a clean-up after ctx has ended. The returned context has ctx's values and ends after
// patience.
func Settle(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), patience)
}

// Once is a command that a client does not send twice, regardless of its MaxRetries and MaxRedirects. Otherwise the
// reply to a second try would hide that the first try may still arrive at Redis. The exception is a cluster client,
// which sends the command again if a node has refused it because the key has moved.
type Once struct{ redis.Cmder }

// NoRetry makes go-redis send the command only once.
func (Once) NoRetry() bool { return true }

// ScriptsOnce wraps a client or a pipeline. It sends each script command only once, as a command of type Once.
type ScriptsOnce struct{ Scripter }

// Scripter is implemented by redis.UniversalClient and redis.Pipeliner.
type Scripter interface {
	redis.Scripter
	Process(ctx context.Context, cmd redis.Cmder) error
}

// Eval sends EVAL with the source of a script, only once.
func (c ScriptsOnce) Eval(ctx context.Context, source string, keys []string, args ...any) *redis.Cmd {
	return c.run(ctx, "eval", source, keys, args)
}

// EvalSha sends EVALSHA with the digest of a script, only once.
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
		cmd.SetFirstKeyPos(3) // a cluster client finds the node by this key
	}
	return cmd
}
