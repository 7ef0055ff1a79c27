// Package all registers every strategy of this module. Import it for that alone:
//
//	import _ "github.com/lockbench/lockbench/strategies/all"
package all

import (
	"slices"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/atomic"
	"github.com/lockbench/lockbench/strategies/blpop"
	"github.com/lockbench/lockbench/strategies/cohort"
	"github.com/lockbench/lockbench/strategies/etcd"
	"github.com/lockbench/lockbench/strategies/gated"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/local"
	"github.com/lockbench/lockbench/strategies/noop"
	"github.com/lockbench/lockbench/strategies/peers/redislock"
	"github.com/lockbench/lockbench/strategies/peers/redsync"
	"github.com/lockbench/lockbench/strategies/peers/rueidislock"
	"github.com/lockbench/lockbench/strategies/polled"
	"github.com/lockbench/lockbench/strategies/postgres"
	"github.com/lockbench/lockbench/strategies/redisson"
	"github.com/lockbench/lockbench/strategies/redlock"
	"github.com/lockbench/lockbench/strategies/semaphore"
	"github.com/lockbench/lockbench/strategies/zookeeper"
)

func init() {
	for _, s := range slices.Concat(polled.Strategies(), redisson.Strategies(), []strategies.Strategy{
		atomic.Strategy(),
		blpop.Strategy(),
		cohort.Strategy(),
		etcd.Strategy(),
		handoff.Strategy(),
		local.Strategy(),
		noop.Strategy(),
		postgres.Strategy(),
		redislock.Strategy(),
		redlock.Strategy(),
		redsync.Strategy(),
		rueidislock.Strategy(),
		semaphore.Strategy(),
		zookeeper.Strategy(),
	}) {
		strategies.RegisterStrategy(s)
	}
	strategies.RegisterWrapper(gated.Wrapper())
}
