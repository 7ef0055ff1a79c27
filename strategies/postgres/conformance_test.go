package postgres_test

import (
	"testing"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/gopgx"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/postgres"
)

// The suite looks at Redis alone; what it tries without one it tries here.
func TestConformance(t *testing.T) {
	for name, options := range modes() {
		t.Run(name, func(t *testing.T) {
			info := options.Refine(postgres.Strategy().Info)
			info.Nodes = 0
			at, _ := node(t, server)
			locktest.Run(t, func(t *testing.T) locktest.Fixture {
				return locktest.Fixture{Open: func(c goredis.Config) (strategies.Locker, error) {
					return postgres.Open(gopgx.Config{Nodes: []gopgx.Node{at}, Prefix: c.Prefix, TTL: c.TTL, Callers: c.Callers, Probe: c.Probe}, options)
				}}
			}, info)
		})
	}
}
