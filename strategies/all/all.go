// Package all registers every strategy of this module. Import it for that alone:
//
//	import _ "github.com/lockbench/lockbench/strategies/all"
package all

import (
	_ "github.com/lockbench/lockbench/strategies/atomic"
	_ "github.com/lockbench/lockbench/strategies/blpop"             // blpop
	_ "github.com/lockbench/lockbench/strategies/cohort"            // cohort
	_ "github.com/lockbench/lockbench/strategies/fair"              // fair
	_ "github.com/lockbench/lockbench/strategies/fenced"            // fenced
	_ "github.com/lockbench/lockbench/strategies/gated"             // gated:NAME
	_ "github.com/lockbench/lockbench/strategies/handoff"           // handoff
	_ "github.com/lockbench/lockbench/strategies/local"             // local
	_ "github.com/lockbench/lockbench/strategies/noop"              // noop
	_ "github.com/lockbench/lockbench/strategies/peers/redislock"   // redislock
	_ "github.com/lockbench/lockbench/strategies/peers/redsync"     // redsync
	_ "github.com/lockbench/lockbench/strategies/peers/rueidislock" // rueidislock
	_ "github.com/lockbench/lockbench/strategies/pubsub"            // pubsub
	_ "github.com/lockbench/lockbench/strategies/pubsubbroadcast"   // pubsub-broadcast
	_ "github.com/lockbench/lockbench/strategies/redlock"           // redlock
	_ "github.com/lockbench/lockbench/strategies/semaphore"         // semaphore
	_ "github.com/lockbench/lockbench/strategies/setnx"             // setnx
	_ "github.com/lockbench/lockbench/strategies/setnxexpire"       // setnx-expire
	_ "github.com/lockbench/lockbench/strategies/spin"              // spin
	_ "github.com/lockbench/lockbench/strategies/stream"            // stream
	_ "github.com/lockbench/lockbench/strategies/tracking"          // tracking
)
