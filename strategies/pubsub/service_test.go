package pubsub_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/lock"
	"github.com/lockbench/lockbench/strategies/pubsub"
)

func TestService(t *testing.T) {
	t.Parallel()
	trial.Service(t, 1, func(clients []redis.UniversalClient, options ...lock.Option) (*lock.Locker, error) {
		return pubsub.New(clients[0], options...)
	})
}
