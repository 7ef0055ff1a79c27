package redisson_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/lock"
	"github.com/lockbench/lockbench/strategies/redisson"
)

func connect() (client redis.UniversalClient, stop func()) {
	address, end := trial.Redis()
	client = redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1})
	return client, func() { _ = client.Close(); end() }
}

// WithLock cancels the context of its function when the lease is lost. The watchdog renews the lease while the function
// runs, so the TTL may be shorter than the work.
func ExampleNewPubSub() {
	client, stop := connect()
	defer stop()
	locker, err := redisson.NewPubSub(client, lock.Prefix("shop:"), lock.TTL(10*time.Second))
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = locker.Close() }()

	err = locker.WithLock(context.Background(), "order:42", func(ctx context.Context) error {
		fmt.Println("ship order 42")
		return ctx.Err()
	}, lock.Watchdog(), lock.Wait(2*time.Second))
	if err != nil {
		log.Print(err)
	}
	// Output: ship order 42
}

// A long job requests a lease with a longer TTL than the default, and extends it while it runs.
func ExampleNewFair() {
	client, stop := connect()
	defer stop()
	locker, err := redisson.NewFair(client, lock.Prefix("shop:"), lock.TTL(10*time.Second))
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = locker.Close() }()

	ctx := context.Background()
	lease, err := locker.Acquire(ctx, "report", lock.TTL(time.Minute))
	if err != nil {
		log.Print(err)
		return
	}
	if err := lease.Extend(ctx, time.Hour); err != nil {
		log.Print("the lease was lost: ", err)
	}
	fmt.Println("at least half an hour:", time.Until(lease.ValidUntil()) > 30*time.Minute)
	if err := lease.Release(context.WithoutCancel(ctx)); err != nil {
		log.Print("the lease was lost: ", err)
	}
	// Output: at least half an hour: true
}

// The store receives the fencing token with each write and can refuse a write that arrives after the write of a later
// holder.
func ExampleNewFenced() {
	client, stop := connect()
	defer stop()
	locker, err := redisson.NewFenced(client, lock.Prefix("shop:"), lock.TTL(10*time.Second))
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = locker.Close() }()

	ctx := context.Background()
	for range 2 {
		lease, err := locker.Acquire(ctx, "order:42")
		if err != nil {
			log.Print(err)
			return
		}
		fmt.Println("write with token", lease.FencingToken())
		if err := lease.Release(context.WithoutCancel(ctx)); err != nil {
			log.Print("the lease was lost: ", err)
		}
	}
	// Output:
	// write with token 1
	// write with token 2
}
