// Package trial tests this module's strategies on a Redis of their own.
package trial

import (
	"context"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/locktest/redisservers"
)

// Conform runs the conformance suite for the first of some variants, written as on the command
// line, and for the others where LOCKBENCH_CONFORM is set.
func Conform(t *testing.T, variants ...string) {
	for _, name := range extent.Chosen(variants) {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait most of the time
			variant := Variant(t, name)
			locktest.Run(t, func(t *testing.T) locktest.Fixture { return Fixture(t, variant) }, variant.Info())
		})
	}
}

// Fixture returns a fixture of a variant on servers of its own; a quorum has two nodes more
// than it needs. What takes seconds is left out unless the variant is thoroughly tested.
func Fixture(t testing.TB, variant strategies.Variant) locktest.Fixture {
	t.Helper()
	f := Everything(t, variant)
	if !thorough(variant) {
		f.Cluster, f.Clock = nil, nil
	}
	return f
}

// Everything is Fixture with clusters and clocks that can be set.
func Everything(t testing.TB, variant strategies.Variant) locktest.Fixture {
	t.Helper()
	nodes := variant.Info().Nodes
	if nodes > 1 {
		nodes += 2
	}
	return redisservers.Fixture(t, nodes, func(c goredis.Config) (strategies.Locker, error) {
		return goredis.Open(variant, c)
	})
}

// thorough says whether a variant is also tested on clusters and with other clocks: three
// strategies, which wait by polling, by subscriptions and in Redis, and all with
// LOCKBENCH_CONFORM=all.
func thorough(v strategies.Variant) bool {
	switch v.Name() {
	case "spin", "pubsub", "handoff":
		return true
	}
	return extent.Thorough()
}

// Variant returns the variant of that name.
func Variant(t testing.TB, name string) strategies.Variant {
	t.Helper()
	variants, err := strategies.ParseVariants(name)
	if err != nil {
		t.Fatal(err)
	}
	return variants[0]
}

// Config returns one instance's config, with clients and a probe of its own.
func Config(t testing.TB, server *redistest.Server) goredis.Config {
	t.Helper()
	return configOn([]goredis.Node{server.Node(t)})
}

func configOn(nodes []goredis.Node) goredis.Config {
	return goredis.Config{Nodes: nodes, Prefix: "trial:", TTL: time.Minute, Probe: &strategies.Probe{}}
}

// Redis starts a server for an example, which has no testing.T.
func Redis() (address string, stop func()) {
	own, err := servers.StartOwn(context.Background(), servers.Options{RunID: "test"})
	if err != nil {
		panic(err)
	}
	return own.Addr(), func() { _ = own.Close(context.Background()) }
}

// Calm runs a play that a stalled machine can spoil. play returns what kept it from showing
// anything, such as a lock that ran out before anybody waited for it, or "". Calm runs it six
// times at most, with its times multiplied by 1, 4 and then 16. A fault that play finds fails
// the test at once.
func Calm(t testing.TB, play func(times int) (spoilt string)) {
	t.Helper()
	for _, times := range []int{1, 4, 16, 16, 16, 16} {
		spoilt := play(times)
		if spoilt == "" {
			return
		}
		t.Logf("spoilt, with times multiplied by %d: %s", times, spoilt)
	}
	t.Error("it was spoilt each time")
}
