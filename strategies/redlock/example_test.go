package redlock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/lock"
	"github.com/lockbench/lockbench/strategies/redlock"
)

// The nodes are independent of one another: no replicas, and no cluster.
func Example() {
	var nodes []redis.UniversalClient
	for range 3 {
		address, stop := trial.Redis()
		defer stop()
		client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1, ContextTimeoutEnabled: true})
		defer func() { _ = client.Close() }()
		nodes = append(nodes, client)
	}
	locker, err := redlock.New(nodes, lock.Prefix("shop:"), lock.TTL(10*time.Second))
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = locker.Close() }()

	ctx := context.Background()
	lease, err := locker.Acquire(ctx, "order:42", lock.Wait(5*time.Second))
	if err != nil {
		log.Print(err)
		return
	}
	// Redlock has no fencing token, so the work begins only if the lease is valid for longer than the work takes.
	if time.Until(lease.ValidUntil()) > 2*time.Second {
		fmt.Println("ship order 42")
	}
	if err := lease.Release(context.WithoutCancel(ctx)); err != nil {
		log.Print("the lease was lost: ", err)
	}
	// Output: ship order 42
}
