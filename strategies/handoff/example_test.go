package handoff_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// A service makes one Locker and shares it among all its goroutines.
func Example() {
	address, stop := trial.Redis()
	defer stop()
	options := &redis.UniversalOptions{Addrs: []string{address}}
	client := redis.NewUniversalClient(options)
	defer func() { _ = client.Close() }()
	locks, err := handoff.Open(goredis.Config{
		Nodes:  []goredis.Node{{Client: client, Options: options}},
		Prefix: "shop:",
		TTL:    10 * time.Second,
	}, handoff.Defaults())
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = locks.Close() }()

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	acquired, err := locks.Acquire(ctx, "order:42")
	if err != nil {
		log.Print(err)
		return
	}
	lease := acquired.(*handoff.Lease)
	// The store receives the token with each write and can refuse a write that arrives after the write of a later holder.
	// The holder starts the work only if the lease is valid for long enough to finish it.
	if time.Until(lease.ValidUntil()) > 2*time.Second {
		fmt.Println("ship order 42, token is set:", lease.FencingToken() > 0)
	}
	if err := lease.Release(context.Background()); err != nil {
		log.Print("the lease was lost: ", err)
	}
	// Output: ship order 42, token is set: true
}
