package realredis_test

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/launch/redisserver"
	"github.com/lockbench/lockbench/internal/testkit/realredis"
)

// TestWithoutAServer checks that a test without a redis-server fails with an error that names every way to get one.
func TestWithoutAServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("LOCKBENCH_REDIS_SERVER", "")
	_, err := redisserver.Start(t.Context(), redisserver.Options{})
	if err == nil {
		t.Fatal("a server was started")
	}
	advice := realredis.Explain(err).Error()
	for _, way := range []string{"apt-get install redis-server", "LOCKBENCH_REDIS_SERVER", "lockbench/docker"} {
		if !strings.Contains(advice, way) {
			t.Errorf("%q does not name the way %q", advice, way)
		}
	}
}
