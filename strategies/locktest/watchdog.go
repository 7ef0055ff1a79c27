package locktest

import (
	"cmp"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// watchdog checks that a living holder keeps its lease and a dead one does not.
func watchdog(s *stage) {
	const ttl = 3 * shortTTL
	other, third := s.open(longTTL), s.open(longTTL)
	var i *instance
	s.calmly(ttl, func(ttl time.Duration, w *standstill) string {
		i = s.open(ttl)
		return s.keeps(i, other, ttl, w)
	})
	// A watchdog that goes on would make the lock its own again, within a third of the TTL.
	for end := time.Now().Add(ttl * 2 / 3); time.Now().Before(end); time.Sleep(ttl / 20) {
		if !s.free(other, "key") {
			s.fatalf("a lock that was released is held again: its watchdog goes on")
		}
	}
	for range attempts {
		next := s.waiterFor(i, "key", i.Acquire)
		if !next.within(s.patience) {
			s.fatalf("a lock that was released is held again: its watchdog goes on")
		}
		next.finish()
		leases := append(s.take(i, "key", s.info.Capacity-1), next.lease)
		time.Sleep(ttl / 2) // until it has been renewed
		if s.held(third, "key") {
			break
		}
		_ = s.releaseAll(leases) // lost while the machine stood still
	}
	s.die(i)
	if !s.eventually(func() bool { return !s.held(third, "key") }) {
		s.fatalf("a dead holder's lease is kept: its watchdog goes on")
	}
}

// keeps holds all permits for longer than their TTL. It returns what is wrong.
func (s *stage) keeps(i, other *instance, ttl time.Duration, w *standstill) (fault string) {
	leases := s.fill(i, "key")
	for end := time.Now().Add(ttl * 3 / 2); fault == "" && time.Now().Before(end); w.sleep(ttl/20, ttl/20) {
		if !s.held(other, "key") {
			fault = "a living holder's lease ran out"
		}
	}
	if watched, ok := leases[0].(strategies.Watched); ok && fault == "" {
		select {
		case <-watched.Lost():
			fault = "a lease that is held was told to be lost"
		default:
		}
	}
	return cmp.Or(fault, s.releaseAll(leases))
}
