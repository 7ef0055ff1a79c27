package pipeline_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/pipeline"
)

// A command that waits for a connection is not sent once its caller has gone, who is told why there is none.
func TestCommandThatWaitsForAConnection(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	conn, err := pipeline.Dial(goredis.Node{Client: client})
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
