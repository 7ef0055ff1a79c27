package lockbench

import (
	"context"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/results"
)

// Validate returns all errors that do not depend on the servers, joined; each names its flag.
func (r StoreOptions) Validate() error { return redis.Store{}.Validate(r.options()) }

// Redis is a Redis that several calls of Run share, also in other processes.
type Redis struct {
	server  *servers.Server
	options StoreOptions
}

// OpenRedis starts the Redis that the options describe, or checks that the Redis at their address answers. The caller
// must close it.
func OpenRedis(ctx context.Context, options StoreOptions) (*Redis, error) {
	server, err := redis.Open(ctx, store.NewRunID(), options.options())
	if err != nil {
		return nil, err
	}
	return &Redis{server, options}, nil
}

// Options returns the options that lead to this Redis; they may hold a password.
func (r *Redis) Options() StoreOptions {
	at := r.Describe()
	if at.Source == "address" {
		return r.options
	}
	return StoreOptions{Address: r.server.Address(), Topology: at.Topology}
}

// Describe returns a text on which Redis is used and why, without secrets.
func (r *Redis) Describe() results.Redis { return r.server.Describe() }

// Close stops the Redis if OpenRedis has started it.
func (r *Redis) Close(ctx context.Context) error { return r.server.Close(ctx) }
