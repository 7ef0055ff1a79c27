// Package all registers every strategy of this module. Import it for that alone:
//
//	import _ "github.com/lockbench/lockbench/strategies/all"
package all

import (
	"slices"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/baselines"
	"github.com/lockbench/lockbench/strategies/blpop"
	"github.com/lockbench/lockbench/strategies/etcd"
	"github.com/lockbench/lockbench/strategies/gated"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/peers"
	"github.com/lockbench/lockbench/strategies/polled"
	"github.com/lockbench/lockbench/strategies/postgres"
	"github.com/lockbench/lockbench/strategies/redisson"
	"github.com/lockbench/lockbench/strategies/redlock"
	"github.com/lockbench/lockbench/strategies/semaphore"
	"github.com/lockbench/lockbench/strategies/zookeeper"
)

func init() {
	strategies.RegisterStrategy(slices.Concat(baselines.Strategies(), polled.Strategies(), redisson.Strategies(),
		peers.Strategies(), []strategies.Strategy{
			blpop.Strategy(),
			handoff.Cohort(),
			etcd.Strategy(),
			handoff.Strategy(),
			postgres.Strategy(),
			redlock.Strategy(),
			semaphore.Strategy(),
			zookeeper.Strategy(),
		})...)
	strategies.RegisterWrapper(gated.Wrapper())
}
