//go:build !redisonly

package all

import (
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/etcd"
	"github.com/lockbench/lockbench/strategies/peers/rueidislock"
	"github.com/lockbench/lockbench/strategies/postgres"
	"github.com/lockbench/lockbench/strategies/zookeeper"
)

// The client libraries of these locks increase the compile time by half. So the build tag redisonly excludes them from
// cmd/lockbench and from the tests.
func init() {
	strategies.RegisterStrategy(etcd.Strategy(), postgres.Strategy(), rueidislock.Strategy(), zookeeper.Strategy())
}
