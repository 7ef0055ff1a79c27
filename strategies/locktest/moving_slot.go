package locktest

import (
	"context"
	"time"

	"github.com/lockbench/lockbench/strategies/goredis"
)

// movingSlot moves the slot of a lock that has a holder and waiters, as a growing cluster
// does, and releases the lock during the move.
func movingSlot(s *stage) {
	if s.fixture.Cluster == nil {
		s.notTried("the fixture has no cluster")
	}
	s.expiring = true
	var cluster Cluster
	s.disturb("start a cluster", func() (err error) { cluster, err = s.fixture.Cluster(); return err })
	s.moveTo([]goredis.Node{cluster.Node}, cluster.Primaries)

	b, all := s.book(), s.several(3, longTTL)
	leases := b.fill(all[0], longTTL)
	waiting := b.queue(all[1:], 4, time.Millisecond, longTTL)
	var finish func() error
	s.disturb("move a slot", func() (err error) { finish, err = cluster.Move("*" + s.id + "*"); return err })
	w := s.background(all[0], "key", func(context.Context) error { b.free(leases...); return nil })
	w.within(100 * time.Millisecond) // while the lock's keys are on two nodes, the release may have to wait
	s.disturb("finish a slot's move", finish)
	w.returned("a release during a slot's move")
	b.all(waiting, "a slot's move")
	s.moveTo(s.nodes, cluster.Primaries) // the primaries' connections to each other do not count
	s.recovers(all...)
}

// moveTo plays the rest of the check on other servers.
func (s *stage) moveTo(nodes, look []goredis.Node) {
	s.nodes = nodes
	for _, o := range s.outside {
		_ = o.Close()
	}
	s.outside = nil
	for _, node := range look {
		s.look(node)
	}
}
