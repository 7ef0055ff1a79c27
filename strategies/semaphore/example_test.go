package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/lock"
	"github.com/lockbench/lockbench/strategies/semaphore"
)

// The semaphore has three permits, so the fourth report has to wait.
func Example() {
	address, stop := trial.Redis()
	defer stop()
	client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	permits, err := semaphore.New(client, 3, lock.Prefix("shop:"), lock.TTL(time.Minute))
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = permits.Close() }()

	ctx := context.Background()
	for n := range 4 {
		lease, err := permits.TryAcquire(ctx, "reports")
		if errors.Is(err, lock.ErrHeld) {
			fmt.Println("report", n, "has to wait")
			continue
		}
		if err != nil {
			log.Print(err)
			return
		}
		defer func() { _ = lease.Release(context.WithoutCancel(ctx)) }()
		fmt.Println("report", n)
	}
	// Output:
	// report 0
	// report 1
	// report 2
	// report 3 has to wait
}
