package redisserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// process starts a redis-server and closes it when the test ends. The test fails if it cannot start.
func process(t *testing.T) *Own {
	t.Helper()
	own, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatalf("this test needs redis-server: %v", err)
	}
	t.Cleanup(func() {
		if err := own.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return own
}

// Redis rejects SAVE while it writes another snapshot. Own.Save must repeat the command until it succeeds.
func TestSaveWaitsForRunningSave(t *testing.T) {
	t.Parallel()
	p := process(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	must(t, Control(p.Addr(), "", func(client *redis.Client) error {
		_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "a", 1, 0)
			pipe.ConfigSet(ctx, "rdb-key-save-delay", "500000") // µs
			pipe.BgSave(ctx)
			pipe.ConfigSet(ctx, "rdb-key-save-delay", "0")
			return nil
		})
		return err
	}))
	must(t, p.Save(ctx))
	if _, err := os.Stat(filepath.Join(p.Started.(*launch.Process).Dir(), snapshot)); err != nil {
		t.Errorf("the snapshot: %v", err)
	}
}

// LookProgram must return the program that LOCKBENCH_REDIS_SERVER names. Without that variable, it must prefer
// redis-server to valkey-server.
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	for _, test := range []struct{ put, variable, found, wrong string }{
		{wrong: "redis-server was not found"},
		{put: "valkey-server", found: "valkey-server"},
		{put: "redis-server", found: "redis-server"},
		{variable: "valkey-server", found: "valkey-server"},
		{variable: "/none/server", wrong: "LOCKBENCH_REDIS_SERVER"},
	} {
		if test.put != "" {
			//nolint:gosec // a program
			must(t, os.WriteFile(filepath.Join(dir, test.put), []byte("#!/bin/sh\n"), 0o755))
		}
		t.Setenv("LOCKBENCH_REDIS_SERVER", test.variable)
		found, err := LookProgram("")
		if test.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%+v: found %s, %v", test, found, err)
			}
		} else if err != nil || found != filepath.Join(dir, test.found) {
			t.Errorf("%+v: found %s, %v", test, found, err)
		}
	}
	for image, program := range map[string]string{
		"redis:8": "redis-server", "valkey/valkey:9.1": "valkey-server", "valkey": "valkey-server",
		"bitnami/valkey:8": "valkey-server", "eqalpha/keydb": "keydb-server",
		"lockbench-redis:local-12": "redis-server", "host:5000/redis": "redis-server",
	} {
		if got := programIn(image); got != program {
			t.Errorf("%s starts %s, want %s", image, got, program)
		}
	}
}

// impostor is a server that cannot start, because another Redis already listens at addr. ends is true if its process
// has ended.
type impostor struct {
	addr string
	ends bool
}

func (i impostor) Addr() string               { return i.addr }
func (impostor) Began() time.Time             { return time.Now().Add(time.Hour) }
func (impostor) Log(context.Context) string   { return "Failed listening on port" }
func (i impostor) Ended(context.Context) bool { return i.ends }

// If another Redis replies on the port, awaitReady must not mistake that Redis for the started server.
func TestOtherServerOnPortIsNotReady(t *testing.T) {
	p := process(t)
	err := awaitReady(t.Context(), impostor{p.Addr(), true}, "")
	if err == nil || !strings.Contains(err.Error(), "Failed listening") {
		t.Errorf("another process's Redis was taken for ours: %v", err)
	}
	if err := awaitReady(t.Context(), p.Started, ""); err != nil {
		t.Errorf("our own was not: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := awaitReady(ctx, impostor{p.Addr(), false}, ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
