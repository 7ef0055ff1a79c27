package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/pipeline"
)

// A command that waits for a connection is not sent once its caller has gone, who is told why there is none.
func TestCommandThatWaitsForAConnection(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	conn, err := pipeline.Dial(goredis.Node{Client: client}, time.Minute, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = conn.Close(), client.Close() })
	poll.Until(t, "a dial has failed", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		err := conn.Send(ctx, redis.NewCmd(ctx, "ping"))
		if err == nil || indeterminate.MayHaveRun(err) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("it returned %v", err)
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
}

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

// go-redis asks a cluster for its nodes without looking at a context. A caller whose context ends returns all the same.
func TestClusterThatStandsStill(t *testing.T) {
	t.Parallel()
	top := redistest.StartTopology(t, "cluster:3")
	node := with(t, top.Nodes(t)[0], func(o *redis.UniversalOptions) {
		o.ContextTimeoutEnabled = false
		o.ReadTimeout = 2 * time.Second
	})
	client := open(t, node)
	for i := range 3 {
		top.Pause(i)
		defer top.Resume(i)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	since := time.Now()
	err := client.Do(ctx, "get", "key").Err()
	if took := time.Since(since); took > time.Second {
		t.Errorf("it returned after %v", took)
	}
	if !errors.Is(err, context.DeadlineExceeded) || indeterminate.MayHaveRun(err) {
		t.Errorf("it ended with %v", err)
	}
	conn, err := pipeline.Dial(node, 50*time.Millisecond, "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = conn.Send(t.Context(), redis.NewCmd(t.Context(), "get", "key"))
	if err == nil || errors.Is(err, context.DeadlineExceeded) || indeterminate.MayHaveRun(err) {
		t.Errorf("without a context that ends it ended with %v", err)
	}
}

// The same holds of commands after Close, which go-redis sends.
func TestServerThatStandsStillAfterClose(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := open(t, with(t, server.Node(t), func(o *redis.UniversalOptions) {
		o.ContextTimeoutEnabled = false
		o.ReadTimeout = 2 * time.Second
	}))
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if err := client.Do(t.Context(), "set", "key", "a").Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := client.Eval(t.Context(), "return redis.call('GET', KEYS[1])", []string{"key"}).Text(); got != "a" {
		t.Fatalf("it got %q, %v", got, err)
	}
	server.Pause()
	defer server.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	since := time.Now()
	err := client.Do(ctx, "get", "key").Err()
	if took := time.Since(since); took > time.Second {
		t.Errorf("it returned after %v", took)
	}
	if !errors.Is(err, context.DeadlineExceeded) || !indeterminate.MayHaveRun(err) {
		t.Errorf("it ended with %v", err)
	}
}
