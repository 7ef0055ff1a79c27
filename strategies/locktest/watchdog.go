package locktest

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// attempts are how often a test is played in which the machine, by standing still for a
// TTL, can make a lease run out.
const attempts = 3

// watchdog checks that a living holder keeps its lease and a dead one does not.
func watchdog(s *stage) {
	const ttl = 3 * shortTTL
	other, third := s.open(longTTL), s.open(longTTL)
	i := s.renewing(other, ttl)
	// A watchdog that goes on would make the lock its own again, within a third of the TTL.
	for end := time.Now().Add(ttl * 2 / 3); time.Now().Before(end); time.Sleep(ttl / 20) {
		if !s.free(other, "key") {
			s.fatalf("a lock that was released is held again: its watchdog goes on")
		}
	}
	next := s.waiterFor(i, "key", i.Acquire)
	if !next.within(s.patience) {
		s.fatalf("a lock that was released is held again: its watchdog goes on")
	}
	next.finish()
	s.take(i, "key", s.info.Capacity-1)
	time.Sleep(ttl / 2) // until it has been renewed
	s.die(i)
	if !s.eventually(func() bool { return !s.held(third, "key") }) {
		s.fatalf("a dead holder's lease is kept: its watchdog goes on")
	}
}

// renewing is an instance that has kept its leases for longer than their TTL. One that
// has lost them is given longer ones if the machine has stood still meanwhile.
func (s *stage) renewing(other *instance, ttl time.Duration) *instance {
	s.Helper()
	for attempt := 1; ; attempt, ttl = attempt+1, 2*ttl {
		i := s.open(ttl)
		fault, stood := s.keeps(i, other, ttl)
		if fault == "" {
			return i
		}
		if stood < ttl/5 || attempt == attempts {
			s.fatalf("%s", fault)
		}
		s.Logf("%s, with a TTL of %v, but the machine stood still for %v: once more", fault, ttl, stood)
	}
}

// keeps holds all permits for longer than their TTL. It returns what is wrong, and the
// longest that the machine kept one look from the next.
func (s *stage) keeps(i, other *instance, ttl time.Duration) (fault string, stood time.Duration) {
	s.Helper()
	last := time.Now()
	look := func() {
		now := time.Now()
		stood, last = max(stood, now.Sub(last)), now
	}
	leases := s.fill(i, "key")
	for end := time.Now().Add(ttl * 3 / 2); fault == "" && time.Now().Before(end); time.Sleep(ttl / 20) {
		if !s.held(other, "key") {
			fault = "a living holder's lease ran out"
		}
		look()
	}
	if watched, ok := leases[0].(strategies.Watched); ok && fault == "" {
		select {
		case <-watched.Lost():
			fault = "a lease that is held was told to be lost"
		default:
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	for _, lease := range leases {
		if err := lease.Release(ctx); err != nil && fault == "" {
			fault = fmt.Sprintf("release: %v", err)
		}
	}
	look()
	return fault, stood
}
