package selfcheck

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// After a server has died go-redis looks once a second whether it is back, and
	// notices only then that its pool has been closed.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}
