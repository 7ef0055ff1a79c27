package cohort_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/cohort"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// A service makes one Locker and shares it among all its goroutines: they are the cohort.
func Example() {
	address, stop := trial.Redis()
	defer stop()
	options := &redis.UniversalOptions{Addrs: []string{address}}
	client := redis.NewUniversalClient(options)
	defer func() { _ = client.Close() }()
	locks, err := cohort.Open(goredis.Config{
		Nodes:  []goredis.Node{{Client: client, Options: options}},
		Prefix: "shop:",
		TTL:    10 * time.Second,
	}, cohort.Defaults())
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = locks.Close() }()

	stock := 100 // somewhere else
	sell := func(ctx context.Context) error {
		lease, err := locks.Acquire(ctx, "stock:42")
		if err != nil {
			return err
		}
		// Nothing is begun that may not end in time.
		if time.Until(lease.(strategies.Timed).ValidUntil()) > 2*time.Second {
			stock--
		}
		return lease.Release(context.Background())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var buyers sync.WaitGroup
	for range 100 {
		buyers.Go(func() {
			if err := sell(ctx); err != nil {
				log.Print(err)
			}
		})
	}
	buyers.Wait()
	fmt.Println("left:", stock)
	// Output: left: 0
}
