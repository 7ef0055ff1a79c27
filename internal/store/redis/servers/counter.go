package servers

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/store"
)

//go:embed counter.lua
var guardedSource string

var guardedScript = redis.NewScript(guardedSource)

// floorOf returns the key with the largest token that a counter has seen.
func floorOf(counter string) string { return counter + ":floor" }

// guarded is a counter that raises its floor on every access, including reads, and refuses older
// tokens (M. Kleppmann, How to do distributed locking, 2016).
type guarded struct {
	server  redis.UniversalClient
	counter string
	token   int64
}

func (g guarded) Read(ctx context.Context) (int64, error) {
	n, err := g.touch(ctx, fmt.Sprintf("%020d", g.token))
	if err != nil {
		return 0, fmt.Errorf("read the counter with token %d: %w", g.token, err)
	}
	return n, nil
}

func (g guarded) Write(ctx context.Context, n int64) error {
	if _, err := g.touch(ctx, fmt.Sprintf("%020d", g.token), n); err != nil {
		return fmt.Errorf("write the counter with token %d: %w", g.token, err)
	}
	return nil
}

func (g guarded) touch(ctx context.Context, args ...any) (int64, error) {
	n, err := guardedScript.Run(ctx, g.server, []string{g.counter, floorOf(g.counter)}, args...).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, store.ErrStale
	}
	return n, err
}

// unguarded is a counter that checks no tokens.
type unguarded struct {
	server  redis.UniversalClient
	counter string
}

func (u unguarded) Read(ctx context.Context) (int64, error) {
	n, err := u.server.Get(ctx, u.counter).Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, fmt.Errorf("read the counter: %w", err)
	}
	return n, nil
}

func (u unguarded) Write(ctx context.Context, n int64) error {
	if err := u.server.Set(ctx, u.counter, n, 0).Err(); err != nil {
		return fmt.Errorf("write the counter: %w", err)
	}
	return nil
}
