package network_test

import (
	"io"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

// Every trip takes the distance twice, and trips do not wait for each other.
func TestDistance(t *testing.T) {
	t.Parallel()
	const oneWay, trips = 20 * time.Millisecond, 100
	server := redistest.Start(t)
	fault, injector, dial := detour(t, "latency:at=0s,delay=20ms")
	action, err := injector.Prepare(fault)
	if err != nil {
		t.Fatal(err)
	}
	if err := action.Hit(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Dialer: dial, PoolSize: 1, ReadTimeout: time.Minute})
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
	conn, err := dial(t.Context(), "tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	begin := time.Now()
	go func() {
		for range trips {
			_, _ = conn.Write([]byte("PING\r\n")) // the reader sees that it failed
			time.Sleep(100 * time.Microsecond)    // so that they are not one piece
		}
	}()
	if _, err := io.ReadFull(conn, make([]byte, trips*len("+PONG\r\n"))); err != nil {
		t.Fatal(err)
	}
	if took, inTurn := time.Since(begin), trips*oneWay; took > inTurn/2 {
		t.Errorf("%d PINGs took %v; had they waited for each other it would have been %v", trips, took, inTurn)
	}
}
