package main

import (
	"context"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// server starts a redis-server for the test, and returns its address.
func server(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	_ = free.Close()
	command := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = command.Process.Kill(), command.Wait() })
	client := redis.NewClient(&redis.Options{Addr: address})
	defer client.Close()
	for ctx, cancel := context.WithTimeout(t.Context(), time.Minute); ; {
		if client.Ping(ctx).Err() == nil {
			cancel()
			return address
		}
		if ctx.Err() != nil {
			t.Fatal("redis-server does not answer")
		}
	}
}

// The spans of the commands that Acquire and Release send must be children of the caller's span.
func TestSpansAreChildrenOfTheCaller(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), server(t), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ship order 17\n  redis.pipeline set time\n", "\n  evalsha\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, &out)
		}
	}
}
