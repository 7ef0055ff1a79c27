package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
)

// The end of a connection is seen also where it has been idle for longer than the timeout of a reply.
func TestServerRestartsWhileTheConnectionIsIdle(t *testing.T) {
	t.Parallel()
	const timeout = 20 * time.Millisecond
	server := redistest.Start(t)
	client := open(t, with(t, server.Node(t), func(o *redis.UniversalOptions) { o.ReadTimeout = timeout }))
	for i := range 3 {
		var err error
		for range 20 { // a slow machine may take longer than the timeout to connect, and says so
			if err = client.Do(t.Context(), "ping").Err(); err == nil || indeterminate.MayHaveRun(err) {
				break
			}
		}
		if err != nil {
			t.Fatalf("after %d restarts: %v", i, err)
		}
		since := time.Now()
		server.Restart(t)
		time.Sleep(time.Until(since.Add(2 * timeout)))
	}
}

// Why a context has ended says nothing about a command that was sent, also where it is an error of Redis's, as errgroup
// makes it.
func TestCauseOfAContext(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := fmt.Errorf("%w: %w", redis.Nil, &net.OpError{Op: "dial", Err: context.Canceled})
	client := open(t, onceSent(t, server.Node(t), "sent", func() { cancel(cause) }))
	if err := client.Do(t.Context(), "ping").Err(); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	defer server.Resume()
	err := client.SetNX(ctx, "sent", 1, time.Minute).Err()
	if !indeterminate.MayHaveRun(err) || !errors.Is(err, context.Canceled) || errors.Is(err, redis.Nil) {
		t.Errorf("it ended with %v", err)
	}
}

// A server that accepts a connection and says nothing holds up neither Close nor those who dial anew.
func TestServerThatDoesNotGreet(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	dialled := make(chan struct{}, 1)
	client := open(t, with(t, server.Node(t), func(o *redis.UniversalOptions) {
		o.ReadTimeout, o.WriteTimeout = -1, -1 // for ever
		o.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			dialled <- struct{}{}
			return conn, err
		}
	}))
	server.Pause()
	defer server.Resume()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-dialled; cancel() }()
	err := client.Do(ctx, "ping").Err()
	if !errors.Is(err, context.Canceled) || indeterminate.MayHaveRun(err) {
		t.Errorf("it ended with %v", err)
	}
	closed := make(chan error)
	go func() { closed <- client.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Second): // a dial ends by itself after three
		t.Fatal("Close waits for the greeting")
	}
}

// Close waits also for the commands on a connection that was replaced.
func TestCloseAfterRedial(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	sent := make(chan struct{})
	client := open(t, onceSent(t, server.Node(t), "last", sync.OnceFunc(func() { close(sent) })))
	if err := client.Do(t.Context(), "ping").Err(); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	over := make(chan error, 1)
	go func() { over <- client.SetNX(t.Context(), "last", 1, time.Minute).Err() }()
	<-sent
	client.Redial()
	closed := make(chan struct{})
	go func() { defer close(closed); _ = client.Close() }()
	select {
	case <-closed:
		t.Error("Close has returned while a command waits for its answer")
	case <-time.After(50 * time.Millisecond):
	}
	server.Resume()
	if err := <-over; err != nil {
		t.Error(err)
	}
	<-closed
}
