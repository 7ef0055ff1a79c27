package redlock_test

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// With extend=script the lease must become longer without a call of Extend. With extend=again and extend=call its end
// must not change.
func TestExtendedLeaseOutlastsTTL(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	var nodes []goredis.Node
	for range 3 {
		nodes = append(nodes, redistest.Start(t).Node(t))
	}
	for extend, lasts := range map[string]bool{"script": true, "again": false, "call": false} {
		p := trial.StartOn(t, nodes, "redlock:node-timeout=500ms,extend="+extend, ttl)
		lease := p.Acquire(t, extend).(strategies.Timed)
		first := lease.ValidUntil()
		time.Sleep(ttl * 2 / 3)
		if lease.ValidUntil().After(first) != lasts {
			t.Errorf("extend=%s: the lease is valid until %v, at first until %v", extend, lease.ValidUntil(), first)
		}
	}
}
