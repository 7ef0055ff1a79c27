package locktest

import (
	"cmp"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// watchdog checks that a living holder keeps every lease, a dead one none, and that nobody
// touches another's.
func watchdog(s *stage) {
	const ttl = 3 * shortTTL
	other := s.open(longTTL)
	var i *instance
	s.calmly(ttl, func(ttl time.Duration) string {
		if i != nil { // its watchdog may still run
			s.die(i)
		}
		i = s.open(ttl)
		return s.keeps(i, other, ttl)
	})
	s.die(i)
	if !s.eventually(func() bool { return !s.held(other, "key") }) {
		s.fatalf("a dead holder's lease is kept: its watchdog goes on")
	}
	if s.info.OnRedis() { // another store cannot be made to forget the lock
		s.sparesOthers(other)
	}
}

// keeps holds leases for longer than their TTL: first two at a time, since a watchdog may
// know of one only, then another on the same key. It returns what is wrong; if nothing is,
// the last lease is still held.
func (s *stage) keeps(i, other *instance, ttl time.Duration) (fault string) {
	leases := append(s.fill(i, "key"), s.fill(i, "second")...)
	fault = lasts(ttl, func() string {
		if !s.held(other, "key") || !s.held(other, "second") {
			return "a living holder's lease ran out"
		}
		return ""
	})
	if watched, ok := strategies.As[strategies.Watched](leases[0]); ok && fault == "" {
		select {
		case <-watched.Lost():
			fault = "a lease that is held was told to be lost"
		default:
		}
	}
	if fault = cmp.Or(fault, s.releaseAll(leases)); fault != "" {
		return fault
	}

	const released = "a lock that was released is held again: its watchdog goes on"
	next := s.waiterFor(i, "key", i.Acquire)
	if !next.within(s.patience) {
		s.fatalf(released)
	}
	next.finish()
	leases = append(s.take(i, "key", s.info.Capacity-1), next.lease)
	fault = lasts(ttl, func() string {
		switch {
		case !s.held(other, "key"):
			return "a living holder's second lease on a key ran out"
		case !s.free(other, "second"):
			return released
		}
		return ""
	})
	if fault != "" {
		_ = s.releaseAll(leases)
	}
	return fault
}

// lasts looks again and again for longer than the TTL, and returns what is wrong.
func lasts(ttl time.Duration, look func() string) (fault string) {
	for end := time.Now().Add(ttl * 3 / 2); fault == "" && time.Now().Before(end); time.Sleep(ttl / 20) {
		fault = look()
	}
	return fault
}

// sparesOthers has an instance lose a lock without notice to another with a long TTL, and
// then die. A watchdog that does not ask whose lock it renews gives that lease its own, short
// TTL, with which it runs out. A standstill of the machine changes nothing in that.
func (s *stage) sparesOthers(other *instance) {
	loser, next := s.open(shortTTL), s.open(longTTL)
	s.fill(loser, "lost")
	s.forget("lost")
	leases := s.fill(next, "lost")
	taken := time.Now()
	time.Sleep(2 * shortTTL)
	if !s.ownConnections(loser) {
		s.eventually(func() bool { return loser.wire.LastWrite().After(taken) }) // the watchdog has looked
	}
	s.die(loser)
	time.Sleep(2 * shortTTL)
	if !s.held(other, "lost") {
		s.fatalf("a lease of another for %v ran out soon after one died who held the lock before: "+
			"its watchdog does not ask whose it is", longTTL)
	}
	_ = s.releaseAll(leases)
}
