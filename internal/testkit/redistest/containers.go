//go:build containers

package redistest

import (
	"github.com/lockbench/lockbench/internal/launch/containers"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
)

// With this tag tests start a Redis in a container where there is no redis-server. Without,
// they link faster: a client for containers is a third of what a test of a lock links.
func init() {
	ways = ""
	quiet = func() {
		servers.Quiet()
		containers.Quiet()
	}
}
