// Package goredis registers the strategies that need no client other than go-redis: all strategies except rueidislock
// and those on other stores. A program that imports this package instead of package all compiles half as much code:
//
//	import _ "github.com/lockbench/lockbench/strategies/all/goredis"
package goredis

import (
	"slices"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/baselines"
	"github.com/lockbench/lockbench/strategies/blpop"
	"github.com/lockbench/lockbench/strategies/gated"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/peers"
	"github.com/lockbench/lockbench/strategies/polled"
	"github.com/lockbench/lockbench/strategies/redisson"
	"github.com/lockbench/lockbench/strategies/redlock"
	"github.com/lockbench/lockbench/strategies/semaphore"
)

func init() {
	strategies.RegisterStrategy(slices.Concat(baselines.Strategies(), polled.Strategies(), redisson.Strategies(),
		peers.Strategies(), []strategies.Strategy{
			blpop.Strategy(),
			handoff.Cohort(),
			handoff.Strategy(),
			redlock.Strategy(),
			semaphore.Strategy(),
		})...)
	strategies.RegisterWrapper(gated.Wrapper())
}
