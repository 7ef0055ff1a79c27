//go:build !redisonly

package all

import (
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/etcd"
	"github.com/lockbench/lockbench/strategies/peers/rueidislock"
	"github.com/lockbench/lockbench/strategies/postgres"
	"github.com/lockbench/lockbench/strategies/zookeeper"
)

// The clients of these locks add half to the compile time of the rest, so cmd/lockbench and tests can exclude them by
// the tag.
func init() {
	strategies.RegisterStrategy(etcd.Strategy(), postgres.Strategy(), rueidislock.Strategy(), zookeeper.Strategy())
}
