package engine

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

//go:embed resource.lua
var resourceSource string

var resourceScript = redis.NewScript(resourceSource)

// errStale is what a resource says to a token older than one it has seen.
var errStale = errors.New("the fencing token is stale")

// floorOf is where the resource keeps the largest token it has seen.
func floorOf(counter string) string { return counter + ":floor" }

// guarded is a resource that raises its floor on every touch, reads included, and
// refuses whoever comes with an older token (M. Kleppmann, How to do distributed
// locking, 2016).
type guarded struct {
	server  redis.UniversalClient
	counter string
	token   int64
}

func (g guarded) read(ctx context.Context) (int64, error) {
	n, err := g.touch(ctx, fmt.Sprintf("%020d", g.token))
	if err != nil {
		return 0, fmt.Errorf("read the counter with token %d: %w", g.token, err)
	}
	return n, nil
}

func (g guarded) write(ctx context.Context, n int64) error {
	if _, err := g.touch(ctx, fmt.Sprintf("%020d", g.token), n); err != nil {
		return fmt.Errorf("write the counter with token %d: %w", g.token, err)
	}
	return nil
}

func (g guarded) touch(ctx context.Context, args ...any) (int64, error) {
	n, err := resourceScript.Run(ctx, g.server, []string{g.counter, floorOf(g.counter)}, args...).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, errStale
	}
	return n, err
}

// writesGuarded checks writes alone. A holder that reads, pauses while others
// come, read too and are slow to write, and then writes, is not found out.
type writesGuarded struct {
	unguarded
	guarded guarded
}

func (w writesGuarded) write(ctx context.Context, n int64) error { return w.guarded.write(ctx, n) }
