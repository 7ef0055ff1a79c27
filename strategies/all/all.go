// Package all registers every strategy of this module. Import it for that alone:
//
//	import _ "github.com/lockbench/lockbench/strategies/all"
package all

import (
	"github.com/lockbench/lockbench/strategies"
	_ "github.com/lockbench/lockbench/strategies/all/goredis"
	"github.com/lockbench/lockbench/strategies/etcd"
	"github.com/lockbench/lockbench/strategies/peers/rueidislock"
	"github.com/lockbench/lockbench/strategies/postgres"
	"github.com/lockbench/lockbench/strategies/zookeeper"
)

func init() {
	strategies.RegisterStrategy(etcd.Strategy(), postgres.Strategy(), rueidislock.Strategy(), zookeeper.Strategy())
}
