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
// address is given, keys on that Redis or the tables of --work transaction on that PostgreSQL. Other stores keep no
// leftovers. Clean recognises the keys of all registered strategies. unlisted adds strategies that are not registered,
// such as those of drivers. Clean does not touch anything that belongs to a running lockbench. It returns one line for
// each container and directory that it removed, one line for everything that it removed from the server, and one line
// for each thing on this machine that it could not inspect. It returns an error if it could not inspect or remove keys
// on the server.
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
		lines = append(lines, "could not inspect: "+why)
	}
	for _, why := range on.Skipped {
		err = errors.Join(err, fmt.Errorf("leftovers of dead runs were not removed: %s", why))
	}
	return lines, errors.Join(err, ctx.Err())
}

// sweepServer removes what killed runs left on the server at the given address. Without an address it does nothing.
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
