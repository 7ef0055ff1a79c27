package spin_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/lock"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/spin"
)

// known is the server's own compare-and-delete; "" if it has none.
func known(t *testing.T, server *redistest.Server) string {
	t.Helper()
	for _, command := range []string{"delifeq", "delex"} {
		if trial.Knows(t, server.Client(t), command) {
			return command
		}
	}
	return ""
}

// startNative starts a server that has a compare-and-delete of that name.
func startNative(t *testing.T) (server *redistest.Server, command string) {
	t.Helper()
	server = redistest.Start(t)
	if command = known(t, server); command == "" {
		t.Skip("this server has neither DELIFEQ nor DELEX: make valkey has one that does")
	}
	return server, command
}

func native() spin.Options {
	options := spin.Defaults()
	options.Release = spin.Native
	return options
}

func TestNativeConformance(t *testing.T) {
	startNative(t)
	trial.Conform(t, "spin:release=native", "spin:release=native,pipeline=true")
}

// Each step is one command of the server's own and no script. The server is asked once what
// it has, in Prepare or before the first acquire.
func TestNativeCommands(t *testing.T) {
	server, command := startNative(t)
	outside := server.Client(t)
	config := trial.Config(t, server)
	var locker, unprepared *spin.Locker
	var lease strategies.Lease
	for _, step := range []struct {
		what string
		do   func() error
		want map[string]int
	}{
		{"prepare", func() error { locker = open(t, config, native()); return nil }, map[string]int{command: 1, "set": 1}},
		{"an acquire", func() error { lease = acquire(t, locker); return nil }, map[string]int{"set": 1}},
		{"an extension", func() error { return lease.(strategies.Extender).Extend(t.Context(), time.Hour) }, map[string]int{"set": 1}},
		{"a release", func() error { return lease.Release(t.Context()) }, map[string]int{command: 1}},
		{"an acquire without prepare", func() (err error) {
			if unprepared, err = spin.Open(config, native()); err == nil {
				lease = acquire(t, unprepared)
			}
			return err
		}, map[string]int{command: 1, "set": 2}},
		{"its release", func() error { return lease.Release(t.Context()) }, map[string]int{command: 1}},
		{"its second acquire", func() error { lease = acquire(t, unprepared); return nil }, map[string]int{"set": 1}},
	} {
		ran := locktest.Calls(t, outside, func() {
			if err := step.do(); err != nil {
				t.Fatalf("%s: %v", step.what, err)
			}
		})
		delete(ran, "hello") // of the pool's first connection
		if !maps.Equal(ran, step.want) {
			t.Errorf("%s ran %v, want %v", step.what, ran, step.want)
		}
	}
}

// A server without such commands is refused before anything is locked, and scripts are
// never run in their place.
func TestNativeIsRefused(t *testing.T) {
	server := redistest.Start(t)
	if command := known(t, server); command != "" {
		t.Skipf("this server has %s", command)
	}
	config := trial.Config(t, server)
	locker, err := spin.Open(config, native())
	if err != nil {
		t.Fatal(err)
	}
	service, err := spin.NewWith(config.Nodes[0].Client, native(), lock.Prefix("trial:"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(service.Close(), locker.Close()) }()
	ran := locktest.Calls(t, server.Client(t), func() {
		for what, do := range map[string]func(context.Context) error{
			"prepare": func(ctx context.Context) error { return locker.Prepare(ctx, nil) },
			"acquire": func(ctx context.Context) error { _, err := locker.Acquire(ctx, "key"); return err },
			"try":     func(ctx context.Context) error { _, err := locker.TryAcquire(ctx, "key"); return err },
			"service": func(ctx context.Context) error { _, err := service.Acquire(ctx, "key"); return err },
		} {
			err := do(t.Context())
			const want = "spin: release=native: the server has neither DELEX … IFEQ (Redis 8.4) nor DELIFEQ (Valkey 9)"
			if !errors.Is(err, errors.ErrUnsupported) || err.Error() != want {
				t.Errorf("%s returned %v, want ErrUnsupported, %s", what, err, want)
			}
		}
	})
	for command := range ran {
		if command == "set" || strings.HasPrefix(command, "eval") {
			t.Errorf("it was refused, and ran %v", ran)
		}
	}
}

// A release or an extension whose answer is lost ends with the context's error, and may be
// repeated: by scripts and by native commands alike.
func TestLostAnswers(t *testing.T) {
	for _, release := range []string{spin.Script, spin.Native} {
		t.Run(release, func(t *testing.T) {
			server := redistest.Start(t)
			if release == spin.Native {
				server, _ = startNative(t)
			}
			path, node := new(trial.Path), server.Node(t)
			options := *node.Options
			options.Dialer = path.Dial
			client := redis.NewUniversalClient(&options)
			t.Cleanup(func() { _ = client.Close() })
			config := goredis.Config{Nodes: []goredis.Node{{Client: client, Options: &options}}, Prefix: "trial:", TTL: time.Minute}
			with := spin.Defaults()
			with.Release = release
			lease := acquire(t, open(t, config, with))
			extender, outside := lease.(strategies.Extender), server.Client(t)
			lose := func(what string, do func(context.Context) error, happened func() bool) {
				t.Helper()
				if err := extender.Extend(t.Context(), time.Minute); err != nil { // connects, and loads the script
					t.Fatal(err)
				}
				before := lease.(strategies.Timed).ValidUntil()
				ctx, cancel := context.WithCancel(t.Context())
				path.Mute()
				result := make(chan error, 1)
				go func() { result <- do(ctx) }()
				poll.Until(t, what, happened)
				cancel()
				path.HangUp()
				if err := <-result; !errors.Is(err, context.Canceled) {
					t.Errorf("%s, the answer was lost, and it returned %v", what, err)
				}
				if until := lease.(strategies.Timed).ValidUntil(); !until.Equal(before) {
					t.Errorf("%s, in doubt, it is valid for %v", what, time.Until(until))
				}
			}
			lose("extended", func(ctx context.Context) error { return extender.Extend(ctx, time.Hour) },
				func() bool { return outside.PTTL(t.Context(), "trial:key").Val() > time.Minute })
			lose("released", lease.Release, func() bool { return outside.Exists(t.Context(), "trial:key").Val() == 0 })
			if err := lease.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
				t.Errorf("a second release returned %v, want ErrNotHeld", err)
			}
		})
	}
}
