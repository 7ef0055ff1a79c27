//go:build containers

package redistest

import "github.com/lockbench/lockbench/internal/launch/containers"

// With this tag, tests start a Redis in a container if there is no redis-server. Without it
// they link faster: the client for containers is a third of a lock test's code.
func init() { containers.Quiet() }
