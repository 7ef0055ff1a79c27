//go:build containers

package redistest

import "github.com/lockbench/lockbench/internal/launch/containers"

// With the build tag containers, tests start a Redis in a container if there is no redis-server. Without the tag they
// link faster, because the client for containers is a third of a lock test's code.
func init() { containers.Quiet() }
