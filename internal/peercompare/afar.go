package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/store/redis/disturb"
	"github.com/lockbench/lockbench/results"
)

// afar carries a plan out on a Redis that so much latency has been put before.
func afar(ctx context.Context, plan lockbench.Plan, oneWay time.Duration) (*results.Report, error) {
	return onOwn(ctx, plan, func(plan lockbench.Plan, at *url.URL) (*results.Report, error) {
		far, err := disturb.NewDistance(at.Host, oneWay)
		if err != nil {
			return nil, err
		}
		defer far.Close()
		at.Host = far.Addr()
		plan.Redis.Address = at.String()
		return lockbench.Run(ctx, plan)
	})
}

// onOwn has do carry a plan out on the Redis at an address, of which there is one, and
// ends the Redis if it was started for that.
func onOwn(ctx context.Context, plan lockbench.Plan, do func(lockbench.Plan, *url.URL) (*results.Report, error)) (report *results.Report, err error) {
	redis, err := lockbench.OpenRedis(ctx, plan.Redis)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, redis.Close(context.WithoutCancel(ctx))) }()
	plan.Redis = redis.Options()
	at, err := url.Parse(plan.Redis.Address)
	if err != nil {
		return nil, fmt.Errorf("the address of Redis: %w", err)
	}
	return do(plan, at)
}
