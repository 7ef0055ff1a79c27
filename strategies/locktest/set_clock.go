package locktest

import "time"

// clockStep is how far the servers' clocks are set: further than any lease lasts.
const clockStep = time.Hour

// clockSetForward sets the servers' clocks forward while a client holds the lock. A lock
// whose leases end by Redis's clock says in its Limits that it does not pass this.
func clockSetForward(s *stage) {
	set := s.settable()
	defer set(0)
	i, other := s.open(longTTL), s.open(longTTL)
	asked := time.Now()
	leases := s.fill(i, "key")
	set(clockStep)
	got := s.asked(other, "key")
	if got != nil && time.Now().Before(validUntil(leases[0], asked, longTTL)) {
		s.errorf("the servers' clocks were set forward by %v, and a second holder got the lock while the first "+
			"one's lease was valid", clockStep)
	}
	for _, lease := range append(leases, got) {
		if lease != nil {
			_ = s.again(lease)
		}
	}
	if !s.eventually(func() bool { return s.free(other, "key") }) {
		s.broken(waking, "the servers' clocks were set forward, and a lock that was released is not free")
	}
}

// clockSetBack sets the servers' clocks back while a lock has a holder and waiters, and then
// passes the lock on.
func clockSetBack(s *stage) {
	set := s.settable()
	defer set(0)
	b, all := s.book(), s.several(3, longTTL)
	b.tokens = back
	for _, ahead := range []time.Duration{-clockStep, -2 * clockStep} {
		leases := b.fill(all[0], longTTL)
		waiting := b.queue(all[1:], 4, time.Millisecond, longTTL)
		set(ahead)
		b.free(leases...)
		b.all(waiting, "the servers' clocks were set back")
	}
}

// settable plays the check on servers whose clock can be set, and returns a function that
// sets it.
func (s *stage) settable() (set func(ahead time.Duration)) {
	if s.fixture.Clock == nil {
		s.notTried("the fixture has no servers whose clock can be set")
	}
	var clock Clock
	s.disturb("start servers whose clock can be set", func() (err error) { clock, err = s.fixture.Clock(); return err })
	nodes := clock.Nodes()
	s.moveTo(nodes, nodes)
	return func(ahead time.Duration) {
		s.disturb("set the servers' clocks", func() error { return clock.Set(ahead) })
	}
}
