package redisson_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// The first waiter's SUBSCRIBE is delayed, a second waiter joins, the lock is released, and the first waiter gives up.
// The second waiter must get the lock once SUBSCRIBE is confirmed. With confirm=false, as in published sample code, the
// second waiter sleeps although the lock is free.
func TestWaiterMissesReleaseBeforeConfirmation(t *testing.T) {
	t.Parallel()
	for variant, tries := range map[string]int64{ // the attempts of both before the release
		"pubsub":               2,
		"pubsub:confirm=false": 3,
	} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			held := trial.Start(t, server, "pubsub", time.Minute).Acquire(t, "key")
			path := new(netfault.Path)
			client := redis.NewClient(&redis.Options{Addr: server.Addr, Dialer: path.Dial, MaxRetries: -1})
			t.Cleanup(func() { _ = client.Close() })
			p := trial.StartOn(t, []goredis.Node{{Client: client}}, variant, time.Minute)
			if _, err := p.Locker.(strategies.Trier).TryAcquire(t.Context(), "key"); err == nil { // opens the pool's connection
				t.Fatal("the lock was free")
			}
			before := p.Counts().Attempts
			gate := path.Hold(netfault.Write, 1) // the write after the first try

			acquire := func(ctx context.Context) chan error {
				over := make(chan error, 1)
				go func() {
					lease, err := p.Locker.Acquire(ctx, "key")
					if err == nil {
						err = lease.Release(context.WithoutCancel(ctx))
					}
					over <- err
				}()
				return over
			}
			impatient, giveUp := context.WithCancel(t.Context())
			first := acquire(impatient)
			<-gate.Caught
			patient, stop := context.WithCancel(t.Context())
			second := acquire(patient)
			poll.Until(t, "both have tried", func() bool { return p.Counts().Attempts-before >= tries })
			time.Sleep(100 * time.Millisecond) // until the answer to the last try
			trial.Release(t, held)
			giveUp()
			if err := <-first; err == nil {
				t.Error("the first waiter had the lock")
			}
			gate.Open()

			limit := 20 * time.Second
			if variant != "pubsub" {
				limit = 500 * time.Millisecond
			}
			select {
			case err := <-second:
				if variant != "pubsub" || err != nil {
					t.Errorf("the second waiter's acquire ended with %v", err)
				}
				second <- nil
			case <-time.After(limit):
				if variant == "pubsub" {
					t.Error("the second waiter sleeps although the lock is free")
				}
			}
			stop()
			<-second //nolint:errcheck // it was cancelled
		})
	}
}
