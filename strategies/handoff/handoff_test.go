package handoff_test

import (
	"flag"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

func init() {
	strategies.RegisterStrategy(handoff.Cohort())
	strategies.RegisterStrategy(handoff.Strategy())
}

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // the tests mostly wait
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

func TestConformance(t *testing.T) {
	t.Parallel()
	trial.Conform(t, "handoff", "handoff:linger=0s", "handoff:tokens=false")
	trial.Conform(t, "cohort")
}

// The tests run with these variants. both lists the two locks, slotKinds lists one variant with a slot per process and
// one with a slot per waiter, and every lists all three.
var (
	both      = []string{"handoff", "cohort"}
	slotKinds = []string{"handoff", "handoff:linger=0s"}
	every     = []string{"handoff", "handoff:linger=0s", "cohort"}
)

// each runs play as a parallel subtest for each variant.
func each(t *testing.T, variants []string, play func(t *testing.T, variant string)) {
	t.Parallel()
	for _, variant := range variants {
		t.Run(variant, func(t *testing.T) { t.Parallel(); play(t, variant) })
	}
}

// lookAt returns a client with which a test inspects the server and subscribes to its channels.
func lookAt(t *testing.T, server *redistest.Server) *redis.Client {
	t.Helper()
	return server.Client(t).(*redis.Client)
}

// onOne starts one server. It runs play on this server as a subtest for each variant, one after the other.
func onOne(t *testing.T, variants []string, play func(t *testing.T, server *redistest.Server, variant string)) {
	t.Parallel()
	server := redistest.Start(t)
	for _, variant := range variants {
		t.Run(variant, func(t *testing.T) { play(t, server, variant) })
	}
}

// open starts a process whose client has the given options, and go-redis's defaults for all others. It sends no command
// to Redis.
func open(t *testing.T, options *redis.UniversalOptions, variant string, ttl time.Duration) trial.Process {
	t.Helper()
	client := redis.NewUniversalClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return openOn(t, goredis.Node{Client: client, Options: options}, variant, ttl)
}

func openOn(t *testing.T, node goredis.Node, variant string, ttl time.Duration) trial.Process {
	t.Helper()
	config := goredis.Config{Nodes: []goredis.Node{node}, Prefix: "trial:", TTL: ttl, Probe: &strategies.Probe{}}
	l, err := goredis.Open(trial.Variant(t, variant), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return trial.Process{Locker: l, Config: config}
}
