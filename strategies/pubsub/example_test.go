package pubsub_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/lock"
	"github.com/lockbench/lockbench/strategies/pubsub"
)

// WithLock ends the work's context when the lease is lost. The watchdog renews it until then,
// so that the TTL may be shorter than the work.
func Example() {
	address, stop := trial.Redis()
	defer stop()
	client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	locker, err := pubsub.New(client, lock.Prefix("shop:"), lock.TTL(10*time.Second))
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
