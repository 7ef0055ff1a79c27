package lockbench

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies"
)

// Clean removes what killed lockbenches have left: containers and directories on
// this machine, and keys on the Redis at the address, if one is given. On other stores
// nothing is left. It knows the keys of all registered strategies, and of unlisted ones, such as drivers. It
// returns what it removed and what it could not look at on this machine. It leaves alone what belongs
// to a running lockbench. What it could not look at or remove on the server is an error.
func Clean(ctx context.Context, at StoreOptions, unlisted ...strategies.Info) ([]string, error) {
	swept := launch.SweepMachine(ctx)
	on, err := sweepServer(ctx, at.options(), unlisted)
	var lines []string
	for _, id := range swept.Containers {
		lines = append(lines, "removed container "+id)
	}
	for _, directory := range swept.Directories {
		lines = append(lines, "removed directory "+directory)
	}
	if on.Found > 0 {
		lines = append(lines, fmt.Sprintf("removed %s of dead runs %s", on.Count(), strings.Join(on.Runs, ", ")))
	}
	for _, why := range swept.Skipped {
		lines = append(lines, "not looked at: "+why)
	}
	for _, why := range on.Skipped {
		err = errors.Join(err, fmt.Errorf("what dead runs left was not removed: %s", why))
	}
	return lines, errors.Join(err, ctx.Err())
}

// sweepServer removes what dead runs left on a user's server, if one is given.
func sweepServer(ctx context.Context, at store.Options, unlisted []strategies.Info) (store.Swept, error) {
	if at.Started() {
		return store.Swept{}, nil
	}
	name, err := store.At(at.Address)
	if err != nil {
		return store.Swept{}, fmt.Errorf("%w: --redis: %w", store.ErrConfig, err)
	}
	kind, err := store.Lookup(name)
	if err != nil {
		return store.Swept{}, err
	}
	return store.SweepAt(ctx, kind, at, unlisted)
}
