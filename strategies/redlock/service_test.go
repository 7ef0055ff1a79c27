package redlock_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/lock"
	"github.com/lockbench/lockbench/strategies/redlock"
)

func TestService(t *testing.T) {
	t.Parallel()
	trial.Service(t, 3, func(clients []redis.UniversalClient, options ...lock.Option) (*lock.Locker, error) {
		return redlock.NewWith(clients, quickly(nil), options...)
	})
	t.Run("of too few nodes", func(t *testing.T) {
		if _, err := redlock.New(make([]redis.UniversalClient, 0)); err == nil {
			t.Error("a quorum of nothing was taken")
		}
	})
}
