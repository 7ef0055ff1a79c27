package fenced_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/fenced"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/lock"
)

// Whatever is written goes with the token, so that the store can refuse it if a later holder
// has been there.
func Example() {
	address, stop := trial.Redis()
	defer stop()
	client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	locker, err := fenced.New(client, lock.Prefix("shop:"), lock.TTL(10*time.Second))
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
