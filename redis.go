package lockbench

import (
	"context"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/results"
)

// Validate returns all errors that it can find without contacting a server, joined. Each error names its flag.
func (r StoreOptions) Validate() error { return redis.Store{}.Validate(r.options()) }

// Redis is a Redis deployment that several calls to Run can share, in this process or in others.
type Redis struct {
	server  *servers.Server
	options StoreOptions
}

// OpenRedis starts the Redis that the options describe or, if they have an address, checks that the Redis there
// answers. The caller must close it.
func OpenRedis(ctx context.Context, options StoreOptions) (*Redis, error) {
	server, err := redis.Open(ctx, store.NewRunID(), options.options())
	if err != nil {
		return nil, err
	}
	return &Redis{server, options}, nil
}

// Options returns the options with which Run uses this Redis. They may contain a password.
func (r *Redis) Options() StoreOptions {
	at := r.Describe()
	if at.Source == "address" {
		return r.options
	}
	return StoreOptions{Address: r.server.Address(), Topology: at.Topology}
}

// Describe describes this Redis and why it was chosen, without secrets.
func (r *Redis) Describe() results.Redis { return r.server.Describe() }

// Close stops the Redis if OpenRedis started it.
func (r *Redis) Close(ctx context.Context) error { return r.server.Close(ctx) }
