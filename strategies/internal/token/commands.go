package token

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
)

// Commands are the commands that free and extend a Lease.
type Commands string

const (
	Scripts Commands = ""        // GET, then DEL or PEXPIRE, within a script: on every server
	DelIfEq Commands = "delifeq" // DELIFEQ key token, and SET … IFEQ: Valkey 9
	DelEx   Commands = "delex"   // DELEX key IFEQ token, and SET … IFEQ: Redis 8.4
)

// FindNative returns DelIfEq or DelEx, whichever the server has. It tries them on a key with
// a token that nobody else has, so that nothing is deleted or set. If the server has neither,
// the error is an errors.ErrUnsupported that says what would do.
func FindNative(ctx context.Context, client redis.UniversalClient, name, token string) (Commands, error) {
	for _, c := range []Commands{DelIfEq, DelEx} {
		_, err := c.free(ctx, client, name, token)
		if redis.HasErrorPrefix(err, "unknown command") {
			continue
		}
		if err != nil {
			return Scripts, fmt.Errorf("try %s: %w", strings.ToUpper(string(c)), err)
		}
		set, err := c.renew(ctx, client, name, token, 1)
		if set || redis.HasErrorPrefix(err, "syntax error") {
			return Scripts, goredis.Unsupported("the server has " + strings.ToUpper(string(c)) + ", and no SET … IFEQ")
		}
		if err != nil {
			return Scripts, fmt.Errorf("try SET … IFEQ: %w", err)
		}
		return c, nil
	}
	return Scripts, goredis.Unsupported("the server has neither DELEX … IFEQ (Redis 8.4) nor DELIFEQ (Valkey 9)")
}

// free deletes the key if it holds the token, and says whether it did.
func (c Commands) free(ctx context.Context, client redis.UniversalClient, name, token string) (bool, error) {
	var freed *redis.Cmd
	switch c {
	case DelIfEq:
		freed = client.Do(ctx, "delifeq", name, token)
	case DelEx:
		freed = client.Do(ctx, "delex", name, "ifeq", token)
	default:
		freed = ReleaseScript.Run(ctx, client, []string{name}, token)
	}
	n, err := freed.Int()
	return n == 1, err
}

// renew has the key expire after so many milliseconds if it holds the token, and says
// whether it did. The client does not send it twice.
func (c Commands) renew(ctx context.Context, client redis.UniversalClient, name, token string, ms int64) (bool, error) {
	if c == Scripts {
		return Extend(ctx, client, name, token, ms)
	}
	set := redis.NewCmd(ctx, "set", name, token, "ifeq", token, "px", ms)
	err := client.Process(ctx, indeterminate.Once{Cmder: set})
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}

// Extend has the key expire after so many milliseconds if it holds the token, by a script that
// the client does not send twice, and says whether it did.
func Extend(ctx context.Context, client redis.UniversalClient, name, token string, ms int64) (bool, error) {
	n, err := ExtendScript.Run(ctx, indeterminate.ScriptsOnce{Scripter: client}, []string{name}, token, ms).Int()
	return n == 1, err
}
