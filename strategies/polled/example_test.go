package polled_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/lock"
	"github.com/lockbench/lockbench/strategies/polled"
)

// A service makes one Locker and shares it among all its goroutines.
func Example() {
	address, stop := trial.Redis()
	defer stop()
	client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	locker, err := polled.NewSpin(client, lock.Prefix("shop:"), lock.TTL(10*time.Second))
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = locker.Close() }()

	ctx := context.Background()
	lease, err := locker.Acquire(ctx, "order:42", lock.Wait(2*time.Second))
	if err != nil {
		log.Print(err)
		return
	}
	// TryAcquire does not wait. It returns ErrHeld, because the first lease still holds the lock.
	if _, err := locker.TryAcquire(ctx, "order:42"); errors.Is(err, lock.ErrHeld) {
		fmt.Println("another client ships order 42")
	}
	if err := lease.Release(context.WithoutCancel(ctx)); err != nil {
		log.Print("the lease was lost: ", err)
	}
	// Output: another client ships order 42
}
