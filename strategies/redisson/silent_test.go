package redisson_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// silenced opens a process with its own client, and a path on which the test can silence the subscriptions of that
// process. The TTL is an hour, so that no waiter wakes because a lease expires.
func silenced(t *testing.T, options redis.UniversalOptions, variant string) (trial.Process, *netfault.Path) {
	t.Helper()
	path := &netfault.Path{}
	options.Dialer = path.Dial
	client := redis.NewUniversalClient(&options)
	t.Cleanup(func() { _ = client.Close() })
	return trial.StartOn(t, []goredis.Node{{Client: client, Options: &options}}, variant, time.Hour), path
}

// silence makes the subscription of waiter fall silent while holder holds the lock. After the release, waiter must
// still get the lock.
func silence(t *testing.T, holder, waiter trial.Process, path *netfault.Path) {
	t.Helper()
	lease := holder.Acquire(t, "key")
	parked := trial.ParkOn(t, "key", 1, waiter)
	silent := path.Silence()
	if len(silent) == 0 {
		t.Error("no subscription has fallen silent")
	}
	trial.Release(t, lease)
	trial.Release(t, parked.Next(t))
	if err := silent.Deliver(); err != nil {
		t.Error(err)
	}
}

// A subscription connection falls silent, with a TTL of an hour. The process must notice this and replace the
// connection long before the TTL ends. It notices a missing echo or, if an ACL forbids the echoes, a PING without a
// reply.
func TestSilentConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	for _, rules := range []string{"", "resetchannels &redisson_lock__channel:{trial:key}* &redisson_sc:{trial:key}*"} {
		for _, variant := range []string{"pubsub", "pubsub-broadcast", "fair", "fenced", "semaphore:permits=1"} {
			t.Run(variant+" "+rules, func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t)
				outside := server.Client(t)
				args := []any{"ACL", "SETUSER", "service", "on", ">secret", "~*", "&*", "+@all"}
				for rule := range strings.FieldsSeq(rules) {
					args = append(args, rule)
				}
				if err := outside.Do(t.Context(), args...).Err(); err != nil {
					t.Fatal(err)
				}
				options := *server.Node(t).Options
				options.Username, options.Password = "service", "secret"
				waiter, path := silenced(t, options, variant)
				holder := trial.Start(t, server, variant, time.Hour)
				silence(t, holder, waiter, path)
			})
		}
	}
}

// In a cluster a silent subscription must be replaced in both cases: with sharded channels, whose messages come from
// the key's node, and with other channels, whose messages come from any node.
func TestSilentNodeIsAbandoned(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	for _, variant := range []string{"pubsub", "pubsub:sharded=off", "fair"} {
		t.Run(variant, func(t *testing.T) {
			waiter, path := silenced(t, c.Options(), variant)
			holder, _ := silenced(t, c.Options(), variant)
			silence(t, holder, waiter, path)
		})
	}
}

// A process with waiters must publish one echo a second, on a separate channel that matches the ACL patterns of the
// lock's channel. A process without waiters must publish none.
func TestEchoes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	outside := server.Client(t)
	p := trial.Start(t, server, "pubsub", time.Hour)
	published := func() int64 {
		return replies.ParseInfo(outside.Info(t.Context(), "commandstats").Val()).Calls()["publish"]
	}
	channels := func() []string { return outside.PubSubChannels(t.Context(), "*").Val() }
	lease := p.Acquire(t, "key")
	began := time.Now()
	parked := trial.ParkOn(t, "key", 5, p)
	poll.Until(t, "three echoes were published", func() bool { return published() >= 3 })
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("three echoes took %v, want one each second", took)
	}
	all := channels()
	if len(all) != 2 {
		t.Errorf("the channels are %q, want the lock's and that of the echoes", all)
	}
	for _, name := range all {
		if name != channel && (!strings.HasPrefix(name, "redisson_lock__channel:echo:") ||
			!strings.HasSuffix(name, ":{trial:key}")) {
			t.Errorf("the echoes are on %q", name)
		}
	}
	for range 5 {
		trial.Release(t, lease)
		lease = parked.Next(t)
	}
	trial.Release(t, lease)
	poll.Until(t, "no channel is left", func() bool { return len(channels()) == 0 })
	idle := published()
	time.Sleep(2500 * time.Millisecond)
	if more := published() - idle; more > 0 {
		t.Errorf("an idle instance has published %d times", more)
	}
}
