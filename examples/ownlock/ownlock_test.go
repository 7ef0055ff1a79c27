package ownlock_test

import (
	"testing"

	"example.com/ownlock"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/locktest/redisservers"
)

// TestConformance tests the claims in Info. Each check starts its own redis-server.
func TestConformance(t *testing.T) {
	locktest.Run(t, func(t *testing.T) locktest.Fixture {
		return redisservers.Fixture(t, 1, func(c goredis.Config) (strategies.Locker, error) {
			return ownlock.Open(c, ownlock.Defaults())
		})
	}, ownlock.Strategy().Info)
}
