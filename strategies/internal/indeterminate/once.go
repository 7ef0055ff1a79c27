package indeterminate

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"
)

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
	words := []any{command, script, len(keys)}
	for _, key := range keys {
		words = append(words, key)
	}
	cmd := redis.NewCmd(ctx, slices.Concat(words, args)...)
	cmd.SetFirstKeyPos(3)
	_ = c.Process(ctx, Once{cmd}) // the command has its error
	return cmd
}
