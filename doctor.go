package lockbench

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/internal/apps/doctor"
	"github.com/lockbench/lockbench/results"
)

// Doctor looks at the Redis that the options name, and at this machine, in a few seconds:
// whether a run would work there, and what would spoil its figures.
//
// The document comes also with an error, which is that of a server that cannot be used.
func Doctor(ctx context.Context, redis RedisOptions) (*results.Doctor, error) {
	options := redis.options()
	if err := options.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if options.Started() {
		return nil, fmt.Errorf("%w: --redis must be the address of a server: one that lockbench starts itself is well", ErrConfig)
	}
	files, err := maxOpenFiles()
	if err != nil {
		return nil, fmt.Errorf("read the limit of open files: %w", err)
	}
	options.RunID = randomID()
	found, err := doctor.Run(ctx, doctor.Options{Redis: options, Files: files})
	found.Tool = results.Tool{Name: "lockbench", Version: Version()}
	if err != nil && ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	return found, err
}
