package pubsubbroadcast_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/pubsubbroadcast"
)

func init() { strategies.RegisterStrategy(pubsubbroadcast.Strategy()) }

func TestConformance(t *testing.T) { trial.Conform(t, "pubsub-broadcast") }

// subscribed counts the connections that subscribe to one channel each.
func subscribed(t testing.TB, outside *redis.Client) int {
	t.Helper()
	list, err := outside.ClientList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(list, " sub=1 ")
}

// The herd: a release costs one wake-up and one try for each waiter there is.
func TestReleaseWakesEveryWaiter(t *testing.T) {
	const waiters = 10
	server := redistest.Start(t)
	outside := server.Client(t)
	holder := trial.Start(t, server, "pubsub-broadcast", time.Minute)
	lease := holder.Acquire(t, "key")
	both := []trial.Process{
		trial.Start(t, server, "pubsub-broadcast", time.Minute),
		trial.Start(t, server, "pubsub-broadcast", time.Minute),
	}
	parked := trial.Park(t, waiters, both...)
	if n := subscribed(t, outside); n != 2*waiters {
		t.Errorf("%d connections subscribe for %d waiters", n, 2*waiters)
	}
	for left := 2 * waiters; left > 0; left-- {
		before := trial.Total(both...)
		trial.Release(t, lease)
		lease = parked.Next(t)
		poll.Until(t, "all who wait have tried", func() bool {
			now := trial.Total(both...)
			return now.Useful-before.Useful == 1 && now.Futile-before.Futile == int64(left-1) &&
				now.Attempts-before.Attempts == int64(left)
		})
	}
	trial.Release(t, lease)
	poll.Until(t, "nobody subscribes", func() bool { return subscribed(t, outside) == 0 })
	if got, want := trial.Total(both...).Attempts, int64(2*2*waiters+waiters*(2*waiters+1)); got != want {
		t.Errorf("%d attempts, want %d: two for each waiter before it parks, one for each wake-up", got, want)
	}
}

// The connection of a wait is kept for the next, and those expected are opened ahead.
func TestConnectionsAreKept(t *testing.T) {
	const callers = 5
	server := redistest.Start(t)
	outside := server.Client(t)
	connections := func() int { return strings.Count(outside.ClientList(t.Context()).Val(), "\n") }
	config := trial.Config(t, server)
	config.Callers = callers
	locker, err := goredis.Open(trial.Variant(t, "pubsub-broadcast"), config)
	if err != nil {
		t.Fatal(err)
	}
	p := trial.Process{Locker: locker, Config: config}
	before := connections()
	if err := locker.(strategies.Preparer).Prepare(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	const pool = 1 // for commands
	if n := connections() - before; n != callers+pool {
		t.Errorf("%d connections were opened for %d callers, and one for commands", n, callers)
	}
	for range 3 {
		lease := p.Acquire(t, "key")
		parked := trial.Park(t, callers, p)
		for range callers {
			trial.Release(t, lease)
			lease = parked.Next(t)
		}
		// Who leaves does not wait for the UNSUBSCRIBE, and may hear one more message.
		poll.Until(t, "nobody subscribes", func() bool { return subscribed(t, outside) == 0 })
		trial.Release(t, lease)
	}
	if n := strings.Count(outside.ClientList(t.Context()).Val(), " cmd=unsubscribe "); n != callers {
		t.Errorf("%d connections have served %d waiters three times", n, callers)
	}
	if err := locker.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	poll.Until(t, "the connections are closed", func() bool {
		return !strings.Contains(outside.ClientList(t.Context()).Val(), "subscribe")
	})
}
