// Package trial tests this module's strategies on a Redis of their own.
package trial

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// Conform runs the conformance suite for the first of some variants, written as on the command
// line, and for the others where LOCKBENCH_CONFORM is set.
func Conform(t *testing.T, variants ...string) {
	for _, name := range extent.Chosen(variants) {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait most of the time
			variant := Variant(t, name)
			locktest.Run(t, func(t *testing.T) locktest.Fixture {
				if !thorough(variant) {
					return Fixture(t, variant)
				}
				return Everything(t, Fixture(t, variant), nodesOf(variant))
			}, variant.Info())
		})
	}
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
