package blpop_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// silenced returns a config with a separate client, and the network path of this client, on which the test can stop all
// traffic.
func silenced(t *testing.T, server *redistest.Server) (goredis.Config, *netfault.Path) {
	t.Helper()
	path := &netfault.Path{}
	config := trial.Config(t, server)
	options := *config.Nodes[0].Options
	options.Dialer = path.Dial
	client := redis.NewUniversalClient(&options)
	t.Cleanup(func() { _ = client.Close() })
	config.Nodes = []goredis.Node{{Client: client, Options: &options}}
	return config, path
}

// wait starts a waiter for "key", and returns once the waiter blocks in BLPOP. The returned channel receives the
// waiter's error, or nil once the waiter has acquired and released the lock.
func wait(ctx context.Context, t *testing.T, outside redis.UniversalClient, acquire func(context.Context, string) (
	strategies.Lease, error,
),
) <-chan error {
	t.Helper()
	over := make(chan error, 1)
	go func() {
		lease, err := acquire(ctx, "key")
		if err == nil {
			err = lease.Release(context.WithoutCancel(ctx))
		}
		over <- err
	}()
	poll.Until(t, "the waiter blocks", func() bool { return blocked(t, outside) == 1 })
	return over
}

// ends returns the error that over receives. The test fails if none arrives within 20 s, long before the holder's TTL
// ends.
func ends(t *testing.T, over <-chan error) error {
	t.Helper()
	select {
	case err := <-over:
		return err
	case <-time.After(20 * time.Second):
		t.Fatal("the waiter does not end")
		return nil
	}
}

// The connections of a waiter's process fall silent together, as behind a firewall that drops packets. The waiter must
// replace them and acquire the released lock long before the holder's TTL ends.
func TestSilentConnectionsAreReplaced(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	outside := server.Client(t)
	config, path := silenced(t, server)
	waiting, holder := open(t, config), open(t, trial.Config(t, server))
	lease := acquire(t, holder)
	over := wait(t.Context(), t, outside, waiting.Acquire)
	echoes := func() int64 {
		return replies.ParseInfo(outside.Info(t.Context(), "commandstats").Val()).Calls()["rpush"]
	}
	poll.Until(t, "an echo was pushed", func() bool { return echoes() > 0 })
	silent := path.Silence()
	release(t, lease)
	if err := ends(t, over); err != nil {
		t.Errorf("the waiter ended with %v", err)
	}
	if err := silent.Deliver(); err != nil {
		t.Error(err)
	}
	poll.Until(t, "no key is left", func() bool { return outside.DBSize(t.Context()).Val() == 0 })
}

// A cancelled wait must end although all connections of its process are silent.
func TestSilentConnectionDoesNotDelayACancel(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	outside := server.Client(t)
	config, path := silenced(t, server)
	waiting, holder := open(t, config), open(t, trial.Config(t, server))
	lease := acquire(t, holder)
	ctx, cancel := context.WithCancel(t.Context())
	over := wait(ctx, t, outside, waiting.Acquire)
	silent := path.Silence()
	if len(silent) == 0 {
		t.Error("no connection has fallen silent")
	}
	cancel()
	if err := ends(t, over); !errors.Is(err, context.Canceled) {
		t.Errorf("the waiter ended with %v", err)
	}
	release(t, lease)
	if err := silent.Deliver(); err != nil {
		t.Error(err)
	}
}

// A process with waiters must push one echo a second, to a list whose name begins with the name of the lock. A process
// without waiters must push none.
func TestEchoes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	outside := server.Client(t)
	locker := open(t, trial.Config(t, server))
	calls := func() map[string]int64 {
		return replies.ParseInfo(outside.Info(t.Context(), "commandstats").Val()).Calls()
	}
	lease := acquire(t, locker)
	began := time.Now()
	over := wait(t.Context(), t, outside, locker.Acquire)
	names := map[string]bool{}
	poll.Until(t, "three echoes were popped", func() bool {
		list, err := outside.ClientList(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		if keys := outside.Keys(t.Context(), "*:echo:*").Val(); len(keys) > 0 {
			names[keys[0]] = true
		}
		return strings.Contains(list, "cmd=blpop") && calls()["rpush"] >= 3
	})
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("three echoes took %v, want one each second", took)
	}
	for name := range names {
		if !strings.HasPrefix(name, "trial:key:echo:") {
			t.Errorf("the echoes are on %q", name)
		}
	}
	release(t, lease)
	if err := ends(t, over); err != nil {
		t.Errorf("the waiter ended with %v", err)
	}
	idle := calls()["rpush"]
	time.Sleep(2500 * time.Millisecond)
	if more := calls()["rpush"] - idle; more > 0 {
		t.Errorf("an idle instance has pushed %d times", more)
	}
}
