package fair_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/fair"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/lock"
)

// A long job asks for a TTL of its own, and extends it while it lives.
func Example() {
	address, stop := trial.Redis()
	defer stop()
	client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	locker, err := fair.New(client, lock.Prefix("shop:"), lock.TTL(10*time.Second))
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
