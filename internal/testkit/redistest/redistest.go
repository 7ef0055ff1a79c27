// Package redistest starts a separate, real Redis for a test, by package realredis, or several of them in a topology.
// With -tags containers it starts them in containers if there is no redis-server.
package redistest

import "github.com/lockbench/lockbench/internal/testkit/realredis"

type (
	// Server is a Redis of a test.
	Server = realredis.Server
	// Clock is the clock of a Redis of a test.
	Clock = realredis.Clock
	// Pair is a primary with a replica.
	Pair = realredis.Pair
	// Cluster is a Redis Cluster.
	Cluster = realredis.Cluster
	// Watched is a primary with a replica that Sentinels watch.
	Watched = realredis.Watched
)

// MasterName is the name of the primary that a Sentinel of a test watches.
const MasterName = realredis.MasterName

// The functions of package realredis.
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
