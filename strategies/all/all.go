// Package all registers every strategy of this module. Import it for that alone:
//
//	import _ "github.com/lockbench/lockbench/strategies/all"
package all

import (
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/atomic"
	"github.com/lockbench/lockbench/strategies/blpop"
	"github.com/lockbench/lockbench/strategies/cohort"
	"github.com/lockbench/lockbench/strategies/etcd"
	"github.com/lockbench/lockbench/strategies/fair"
	"github.com/lockbench/lockbench/strategies/fenced"
	"github.com/lockbench/lockbench/strategies/gated"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/local"
	"github.com/lockbench/lockbench/strategies/noop"
	"github.com/lockbench/lockbench/strategies/peers/redislock"
	"github.com/lockbench/lockbench/strategies/peers/redsync"
	"github.com/lockbench/lockbench/strategies/peers/rueidislock"
	"github.com/lockbench/lockbench/strategies/postgres"
	"github.com/lockbench/lockbench/strategies/pubsub"
	"github.com/lockbench/lockbench/strategies/pubsubbroadcast"
	"github.com/lockbench/lockbench/strategies/redissonspin"
	"github.com/lockbench/lockbench/strategies/redlock"
	"github.com/lockbench/lockbench/strategies/semaphore"
	"github.com/lockbench/lockbench/strategies/setnx"
	"github.com/lockbench/lockbench/strategies/setnxexpire"
	"github.com/lockbench/lockbench/strategies/spin"
	"github.com/lockbench/lockbench/strategies/zookeeper"
)

//go:generate go run ./internal/gendoc

// A strategy's doc is its package comment: go generate writes it into docs.go.
func init() {
	for _, s := range []struct {
		strategy strategies.Strategy
		doc      string
	}{
		{atomic.Strategy(), atomicDoc},
		{blpop.Strategy(), blpopDoc},
		{cohort.Strategy(), cohortDoc},
		{etcd.Strategy(), etcdDoc},
		{fair.Strategy(), fairDoc},
		{fenced.Strategy(), fencedDoc},
		{handoff.Strategy(), handoffDoc},
		{local.Strategy(), localDoc},
		{noop.Strategy(), noopDoc},
		{postgres.Strategy(), postgresDoc},
		{pubsub.Strategy(), pubsubDoc},
		{pubsubbroadcast.Strategy(), pubsubbroadcastDoc},
		{redislock.Strategy(), redislockDoc},
		{redissonspin.Strategy(), redissonspinDoc},
		{redlock.Strategy(), redlockDoc},
		{redsync.Strategy(), redsyncDoc},
		{rueidislock.Strategy(), rueidislockDoc},
		{semaphore.Strategy(), semaphoreDoc},
		{setnx.Strategy(), setnxDoc},
		{setnxexpire.Strategy(), setnxexpireDoc},
		{spin.Strategy(), spinDoc},
		{zookeeper.Strategy(), zookeeperDoc},
	} {
		s.strategy.Info.Doc = s.doc
		strategies.RegisterStrategy(s.strategy)
	}
	gate := gated.Wrapper()
	gate.Doc = gatedDoc
	strategies.RegisterWrapper(gate)
}
