package faults_test

import (
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/faults"
	"github.com/lockbench/lockbench/internal/redistest"
)

// Every trip takes the distance twice, and trips do not wait for each other.
func TestDistance(t *testing.T) {
	t.Parallel()
	const oneWay, trips = 20 * time.Millisecond, 200
	far, err := faults.NewDistance(redistest.Start(t).Addr, oneWay)
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	client := redis.NewClient(&redis.Options{Addr: far.Addr(), PoolSize: 10, ReadTimeout: time.Minute})
	defer client.Close()
	for range 3 {
		begin := time.Now()
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		// A sleep may end some microseconds early.
		if took := time.Since(begin); took < 2*oneWay-time.Millisecond {
			t.Errorf("a PING took %v, and the way alone is %v", took, 2*oneWay)
		}
	}
	auto, err := client.AsyncAutoPipelineWithOptions(&redis.AutoPipelineOptions{FullDuplex: true})
	if err != nil {
		t.Fatal(err)
	}
	defer auto.Close()
	begin := time.Now()
	var all sync.WaitGroup
	for range trips { // down one connection, one after the other
		all.Go(func() {
			if err := auto.Ping(t.Context()).Err(); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(100 * time.Microsecond) // so that they are not one write
	}
	all.Wait()
	if took, inTurn := time.Since(begin), trips*oneWay; took > inTurn {
		t.Errorf("%d PINGs took %v; one behind the other in one direction they would have taken %v", trips, took, inTurn)
	}
}
