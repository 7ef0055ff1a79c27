package servers

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
	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// A user's server is the same after as before.
func TestUsersServerIsLeftAlone(t *testing.T) {
	p := process(t)
	s := open(t, Options{Address: "redis://" + p.Addr()})
	if s.Owned() != nil {
		t.Error("a user's server counts as ours")
	}
	if about := s.Describe(); about.Source != "address" || about.Address != p.Addr() || about.Network != "loopback" {
		t.Errorf("description %+v", about)
	}
	must(t, s.Close(context.Background()))
	if !up(t, p.Addr()) {
		t.Fatal("it was stopped")
	}
	again := open(t, Options{Address: p.Addr(), RunID: "again"})
	poll.Until(t, "only the observer is connected", func() bool {
		r, err := again.Read(t.Context())
		return err == nil && r.Clients == 1
	})
	s.nodes = nil // closed above
}

// A server that writes a snapshot of its own accord refuses to write another.
func TestSaveWaitsForASaveUnderWay(t *testing.T) {
	t.Parallel()
	p := process(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	must(t, control(p.Addr(), "", func(client *redis.Client) error {
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

// A strategy does not fit a server that is too old for it, whatever the topology.
func TestTooOld(t *testing.T) {
	needy := strategies.Info{Nodes: 1, Since: strategies.Since{Redis: "7.0", For: "sharded channels"}}
	for version, want := range map[string]string{
		"6.2.14": "it needs Redis 7.0 (sharded channels), this is 6.2.14", "7.0.0": "", "8.0.2": "", "10.1": "", "": "",
	} {
		s := &Server{topology: Topology{Kind: Single}, nodes: []*node{{}}}
		s.nodes[0].software.Software = goredis.SoftwareOf(replies.ParseInfo("redis_version:"+version), nil)
		if got := s.Unfit(needy); got != want {
			t.Errorf("on %q it is unfit by %q, want %q", version, got, want)
		}
		if got := s.Unfit(strategies.Info{Nodes: 1}); got != "" {
			t.Errorf("a strategy without needs does not fit %q: %s", version, got)
		}
	}
}

// The program to start is the one asked for, else Redis, else Valkey.
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	for _, test := range []struct{ put, variable, found, wrong string }{
		{wrong: "there is no redis-server"},
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
		found, err := lookProgram("")
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

// impostor is a starting server whose port another process has.
type impostor struct {
	addr string
	ends bool
}

func (i impostor) Addr() string               { return i.addr }
func (impostor) Began() time.Time             { return time.Now().Add(time.Hour) }
func (impostor) Log(context.Context) string   { return "Failed listening on port" }
func (i impostor) Ended(context.Context) bool { return i.ends }

// A stranger who answers on the port is not taken for the server that was started.
func TestAStrangerIsNotReady(t *testing.T) {
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
