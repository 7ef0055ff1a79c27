package locktest

import (
	"context"
	"slices"
	"time"

	"github.com/lockbench/lockbench/strategies/goredis"
)

// movingSlot moves the slot of a lock that has a holder and waiters, as a growing cluster
// does, and releases the lock during the move.
func movingSlot(s *stage) {
	cluster := s.cluster()
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

// dyingNode kills the node that has the lock, and expects the lock's next grant within its
// TTL and the usual patience. A lock need not notice more than that its client's connections
// break: the replica has all data.
func dyingNode(s *stage) {
	const ttl = 10 * time.Second
	cluster := s.cluster()
	if cluster.Die == nil {
		s.notTried("no node of the fixture's cluster may die")
	}
	s.patience += ttl
	b, all := s.book(), s.several(3, ttl)
	var kill func() ([]goredis.Node, error)
	leases := b.fill(s.open(longTTL), longTTL)
	s.disturb("start a replica", func() (err error) { kill, err = cluster.Die("*" + s.id + "*"); return err })
	b.free(leases...)

	leases = b.fill(all[0], ttl)
	waiting := b.queue(all[1:], 4, time.Millisecond, ttl)
	var living []goredis.Node
	s.disturb("kill a node", func() (err error) { living, err = kill(); return err })
	promoted := time.Now()
	s.moveTo(s.nodes, living)
	w := s.background(all[0], "key", func(context.Context) error { b.free(leases...); return nil })
	b.all(waiting, "the promotion of a dead node's replica")
	first := slices.MinFunc(waiting, func(a, b *waiter) int { return a.over.Compare(b.over) })
	s.Logf("%v after the promotion a waiter had had the lock", first.over.Sub(promoted).Round(time.Millisecond))
	w.returned("a release after a node's death")
	s.moveTo(s.nodes, living)
	s.recovers(all...)
}

// cluster plays the check on a cluster. Keys with a TTL may be left there.
func (s *stage) cluster() Cluster {
	if s.fixture.Cluster == nil {
		s.notTried("the fixture has no cluster")
	}
	s.expiring = true
	var cluster Cluster
	s.disturb("start a cluster", func() (err error) { cluster, err = s.fixture.Cluster(); return err })
	s.moveTo([]goredis.Node{cluster.Node}, cluster.Primaries)
	return cluster
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
