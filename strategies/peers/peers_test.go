package peers_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/peers"
)

func init() { strategies.RegisterStrategy(peers.Strategies()...) }

// The adapted libraries change only with go.mod, so only make others runs the conformance suite on them.
func TestConformance(t *testing.T) {
	if !extent.More() {
		t.Skip("slow: make others runs it")
	}
	trial.Conform(t, "redislock:delay=5ms", "redislock:tuned=true", "redsync:delay=5ms",
		"redsync:tuned=true")
}

func TestUncontendedCommands(t *testing.T) {
	for _, test := range []struct {
		strategy string
		want     map[string]int
	}{
		{"redislock", map[string]int{"evalsha": 2, "msetnx": 1, "pexpire": 1, "mget": 1, "del": 1}},
		{"redsync", map[string]int{"set": 1, "evalsha": 1, "get": 1, "del": 1}},
	} {
		server := redistest.Start(t)
		p := trial.Start(t, server, test.strategy, time.Minute)
		trial.Release(t, p.Acquire(t, "key")) // opens the connection, loads the scripts
		got := locktest.Calls(t, server.Client(t), func() { trial.Release(t, p.Acquire(t, "key")) })
		if !maps.Equal(got, test.want) {
			t.Errorf("%s: an acquire and release ran %v, want %v", test.strategy, got, test.want)
		}
	}
}

// The libraries limit a wait: redsync to 32 tries, and redislock to one TTL. A waiter of the adapters must continue
// beyond these limits until the lock is released.
func TestWaitsBeyondLibraryLimit(t *testing.T) {
	for _, strategy := range []string{"redsync:delay=1ms", "redislock:delay=1ms"} {
		server := redistest.Start(t)
		holder := trial.Start(t, server, strategy, time.Minute)
		waiter := trial.Start(t, server, strategy, 50*time.Millisecond)
		lease, done := holder.Acquire(t, "key"), make(chan error)
		began := time.Now()
		go func() {
			next, err := waiter.Locker.Acquire(t.Context(), "key")
			if err == nil {
				_ = next.Release(t.Context()) // it may have run out
			}
			done <- err
		}()
		outside, tries := server.Client(t), 0
		poll.Until(t, "a hundred tries", func() bool {
			ran := locktest.Calls(t, outside, func() { time.Sleep(20 * time.Millisecond) })
			tries += ran["set"] + ran["msetnx"]
			return tries >= 100 && time.Since(began) > 200*time.Millisecond
		})
		select {
		case err := <-done:
			t.Fatalf("%s: a waiter gave up: %v", strategy, err)
		default:
		}
		trial.Release(t, lease)
		if err := <-done; err != nil {
			t.Errorf("%s: a waiter gave up: %v", strategy, err)
		}
	}
}

// The server is killed while a client waits. The client must get an error within a minute.
func TestLostServerIsReported(t *testing.T) {
	for _, strategy := range []string{"redislock", "redsync:delay=5ms"} {
		server := redistest.Start(t)
		p := trial.Start(t, server, strategy, time.Minute)
		p.Acquire(t, "key")
		failed := make(chan error, 1)
		go func() {
			_, err := p.Locker.Acquire(t.Context(), "key")
			failed <- err
		}()
		server.Kill()
		select {
		case err := <-failed:
			if err == nil {
				t.Errorf("%s: the lock was granted by a dead server", strategy)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: a waiter on a dead server gets no error", strategy)
		}
	}
}

// With one of three nodes down, redsync must acquire the lock, and a waiter must continue beyond the 32 tries of the
// library.
func TestRedsyncWaitsWithoutAMinority(t *testing.T) {
	config := goredis.Config{Prefix: "trial:", TTL: time.Minute}
	var all []*redistest.Server
	for range 3 {
		server := redistest.Start(t)
		all = append(all, server)
		config.Nodes = append(config.Nodes, server.Node(t))
	}
	locker, err := goredis.Open(trial.Variant(t, "redsync:delay=5ms"), config)
	if err != nil {
		t.Fatal(err)
	}
	all[0].Kill()
	lease, err := locker.Acquire(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		next, err := locker.Acquire(t.Context(), "key")
		if err == nil {
			err = next.Release(t.Context())
		}
		done <- err
	}()
	outside, tries := all[1].Client(t), 0
	poll.Until(t, "more tries than redsync makes", func() bool {
		tries += locktest.Calls(t, outside, func() { time.Sleep(20 * time.Millisecond) })["set"]
		return tries > 40
	})
	trial.Release(t, lease)
	if err := <-done; err != nil {
		t.Errorf("a waiter gave up although two nodes of three live: %v", err)
	}
}

// Each combination of options must have a separate summary, which names the delay if one is set.
func TestSummariesFollowOptions(t *testing.T) {
	t.Parallel()
	for _, library := range []string{"redislock", "redsync"} {
		seen := map[string]bool{}
		for _, options := range []map[string]string{
			nil, {"tuned": "true"}, {"delay": "5ms"}, {"tuned": "true", "delay": "7ms"},
		} {
			v, err := strategies.NewVariant(library, options)
			if err != nil {
				t.Fatal(err)
			}
			summary := v.Info().Summary
			if seen[summary] || !strings.Contains(summary, options["delay"]) {
				t.Errorf("%s: %q, as another", v.Name(), summary)
			}
			seen[summary] = true
		}
	}
}
