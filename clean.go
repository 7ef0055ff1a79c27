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

// Clean removes the leftovers of killed lockbench processes: containers and directories on this machine and, if an
// address is given, keys on that Redis, or on that PostgreSQL the tables of --work transaction. Other stores keep no
// leftovers. Clean knows the keys of all registered strategies and of the unlisted ones, such as drivers. It does not touch anything of a running lockbench. It returns
// a line for everything that it removed and for everything that it could not inspect on this machine. Keys that it
// could not inspect or remove on the server are an error.
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
		err = errors.Join(err, fmt.Errorf("leftovers of dead runs were not removed: %s", why))
	}
	return lines, errors.Join(err, ctx.Err())
}

// sweepServer removes the leftovers of dead runs from a user's server, if one is given.
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
