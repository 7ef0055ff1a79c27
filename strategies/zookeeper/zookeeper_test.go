package zookeeper

import (
	"testing"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/gozk"
	"github.com/lockbench/lockbench/strategies/locktest"
)

func TestConformance(t *testing.T) {
	info := Strategy().Info
	info.Nodes = 0
	locktest.Run(t, func(t *testing.T) locktest.Fixture {
		return locktest.Fixture{Open: func(c goredis.Config) (strategies.Locker, error) {
			return Open(gozk.Config{
				Nodes:  []gozk.Node{{Servers: []string{shared.addr()}, Standalone: true}},
				Prefix: c.Prefix, TTL: c.TTL, Callers: c.Callers, Probe: c.Probe,
			}, Options{})
		}}
	}, info)
}
