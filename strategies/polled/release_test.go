package polled_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// native returns "delifeq" or "delex", whichever the server supports: a command that deletes a key if it has a given
// value. It returns "" if the server supports neither.
func native(t *testing.T, server redis.UniversalClient) string {
	t.Helper()
	known, err := server.Command(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"delifeq", "delex"} {
		if known[name] != nil {
			return name
		}
	}
	return ""
}

// If the server has DELIFEQ or DELEX, a release must send only this command, and a late release must not delete the
// next holder's lock. If the server has neither, Prepare must return an error that names the versions it needs. make
// valkey runs this test on Valkey 9.
func TestReleaseByCommand(t *testing.T) {
	const variant = "spin:release=delex"
	server := redistest.Start(t)
	outside := server.Client(t)
	command := native(t, outside)
	if command == "" {
		old, err := goredis.Open(trial.Variant(t, variant), trial.Config(t, server))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = old.Close() }()
		prepares, _ := strategies.As[strategies.Preparer](old)
		err = prepares.Prepare(t.Context(), nil)
		const want = "spin:release=delex needs Redis 8.4 or Valkey 9.0 (DELEX or DELIFEQ), this is "
		if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), want) ||
			!strings.HasSuffix(err.Error(), "; set release=script there") {
			t.Errorf("the refusal is %v, want %s", err, want)
		}
		return
	}
	p := trial.Start(t, server, variant, time.Minute)
	trial.Release(t, p.Acquire(t, "key")) // opens the pool's connection
	var lease strategies.Lease
	if ran := locktest.Calls(t, outside, func() { lease = p.Acquire(t, "key") }); !maps.Equal(ran, calls{"set": 1}) {
		t.Errorf("an acquire ran %v, want one set", ran)
	}
	if ran := locktest.Calls(t, outside, func() { trial.Release(t, lease) }); !maps.Equal(ran, calls{command: 1}) {
		t.Errorf("a release ran %v, want one %s", ran, command)
	}
	late := p.Acquire(t, "key")
	outside.Del(t.Context(), "trial:key")
	theirs := p.Acquire(t, "key")
	if err := late.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("the late release returned %v, want ErrNotHeld", err)
	}
	trial.Release(t, theirs)
}

// With release=delex, spin must pass the conformance suite on a server that has DELEX or DELIFEQ.
func TestReleaseByCommandConforms(t *testing.T) {
	if native(t, redistest.Start(t).Client(t)) == "" {
		t.Skip("this server has neither DELEX nor DELIFEQ; make valkey runs it on one that has")
	}
	trial.Conform(t, "spin:release=delex")
}
