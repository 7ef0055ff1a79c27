package locktest

import (
	"cmp"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// watchdog checks that a living holder keeps every lease, and a dead one none.
func watchdog(s *stage) {
	const ttl = 3 * shortTTL
	other := s.open(longTTL)
	var i *instance
	s.calmly(ttl, func(ttl time.Duration, w *standstill) string {
		if i != nil { // its watchdog may still run
			s.die(i)
		}
		i = s.open(ttl)
		return s.keeps(i, other, ttl, w)
	})
	s.die(i)
	s.frees(other, "key")
}

// frees expects a dead holder's lock to become free.
func (s *stage) frees(other *instance, key string) {
	if !s.eventually(func() bool { return !s.held(other, key) }) {
		s.fatalf("a dead holder's lease is kept: its watchdog goes on")
	}
}

// keeps holds leases for longer than their TTL: first two at a time, since a watchdog may
// know of one only, then another on the same key. It returns what is wrong; if nothing is,
// the last lease is still held.
func (s *stage) keeps(i, other *instance, ttl time.Duration, w *standstill) (fault string) {
	leases := append(s.fill(i, "key"), s.fill(i, "second")...)
	s.succeeded(i, "lost", ttl)
	fault = s.lasts(ttl, w, func() string {
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
	if fault == "" && !s.eventually(func() bool { return !s.held(other, "lost") }) {
		s.die(i)
		s.frees(other, "lost") // if not, it is the dead instance's own watchdog
		s.fatalf("a lease of another, who has died, is kept by one who held the lock before: the watchdog does not ask whose it is")
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
	fault = s.lasts(ttl, w, func() string {
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
func (s *stage) lasts(ttl time.Duration, w *standstill, look func() string) (fault string) {
	for end := time.Now().Add(ttl * 3 / 2); fault == "" && time.Now().Before(end); w.sleep(ttl/20, ttl/20) {
		fault = look()
	}
	return fault
}

// succeeded makes the instance lose a lock without notice; another instance acquires it and
// dies.
func (s *stage) succeeded(i *instance, key string, ttl time.Duration) {
	if !s.info.OnRedis() { // another store cannot be made to forget the lock
		return
	}
	s.fill(i, key)
	s.forget(key)
	mortal := s.open(ttl)
	s.fill(mortal, key)
	s.die(mortal)
}
