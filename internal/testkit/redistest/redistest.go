// Package redistest starts real Redis servers for a test: a single one, as package realredis does, or several in a
// topology. With the build tag containers it starts them in containers if there is no redis-server.
package redistest

import "github.com/lockbench/lockbench/internal/testkit/realredis"

type (
	// Server is a running Redis that belongs to one test.
	Server = realredis.Server
	// Clock sets the clock of one Redis.
	Clock = realredis.Clock
	// Pair is a primary and its replica, which can swap roles.
	Pair = realredis.Pair
	// Cluster is a Redis Cluster of three primaries, with a client for each.
	Cluster = realredis.Cluster
	// Watched is a primary and its replica, which a Sentinel watches as MasterName.
	Watched = realredis.Watched
)

// MasterName is the name under which the Sentinels of tests watch a primary.
const MasterName = realredis.MasterName

// Functions of package realredis, repeated here so that a test needs only one import.
var (
	Start         = realredis.Start
	StartSettable = realredis.StartSettable
	StartPair     = realredis.StartPair
	StartCluster  = realredis.StartCluster
	StartWatched  = realredis.StartWatched
	StartSentinel = realredis.StartSentinel
	Dial          = realredis.Dial
	DialCluster   = realredis.DialCluster
	NoClients     = realredis.NoClients
	Hear          = realredis.Hear
)
