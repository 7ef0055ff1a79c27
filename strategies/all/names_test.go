package all_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// furtherKeys maps a strategy to the keys that it stores for a lock named "lock", except the key "lock" itself. It
// contains every strategy that has such keys in a format of this module.
var furtherKeys = map[string][]string{
	"handoff": {"lock:handoff"},
	"cohort":  {"lock:handoff"},
	"blpop":   {"{lock}:waiters", "{lock}:signal"},
}

// A lock must not have the name of another lock's queue or set, so Acquire must refuse such a name. The test also fails
// if a strategy of this module stores a key that furtherKeys does not list.
func TestLockNamesNeverEqualQueueKeys(t *testing.T) {
	t.Parallel()
	for _, s := range strategies.All() {
		info := s.Info
		if info.Store != "" || !info.Claims.Exclusion || info.Library != "" || len(info.Libraries) > 0 ||
			info.Nodes > 1 {
			continue
		}
		t.Run(s.Info.Name, func(t *testing.T) {
			t.Parallel()
			refusesQueueKeyNames(t, s.Info.Name)
		})
	}
}

func refusesQueueKeyNames(t *testing.T, strategy string) {
	server := redistest.Start(t)
	outside := server.Client(t)
	open := func() strategies.Locker {
		config := goredis.Config{Nodes: []goredis.Node{server.Node(t)}, TTL: time.Minute}
		l, err := goredis.Open(trial.Variant(t, strategy), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	holder, other := open(), open()
	lease, err := holder.Acquire(t.Context(), "lock")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lease.Release(context.Background()) }()
	waiting, giveUp := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = other.Acquire(waiting, "lock")
	}()
	names := furtherKeys[strategy]
	if len(names) == 0 {
		time.Sleep(100 * time.Millisecond) // what it keeps would be there by then, or be found in another run
	} else {
		poll.Until(t, "it keeps a key", func() bool { return outside.Exists(t.Context(), names[0]).Val() == 1 })
	}
	for _, key := range outside.Keys(t.Context(), "*").Val() {
		if key != "lock" && !slices.Contains(names, key) {
			t.Errorf("it keeps %q, of which this test does not know", key)
		}
	}
	giveUp()
	<-gone
	for _, name := range names {
		soon, done := context.WithTimeout(t.Context(), time.Minute)
		_, err := other.Acquire(soon, name)
		done()
		if err == nil || !strings.Contains(err.Error(), "must not be named") {
			t.Errorf("a lock named %q is answered %v", name, err)
		}
	}
}
