package locktest

import (
	"sync"
	"time"
)

// failover swaps the servers with their replicas, which have all data, while a lock is passed
// on: once before its release, once during it. All waiters are then still connected to a
// replica.
func failover(s *stage) {
	if s.fixture.Failover == nil {
		s.notTried("the fixture's servers cannot fail over")
	}
	s.expiring = true
	const hold = 10 * time.Millisecond
	b, all := s.book(), s.several(4, s.lasting())
	swapped := false
	swap := func() {
		s.disturb("fail over", s.fixture.Failover)
		swapped = !swapped
	}
	defer func() {
		if swapped { // restore the first roles
			swap()
		}
	}()
	for _, during := range []bool{false, true} {
		leases := b.fill(all[0], s.lasting())
		waiting := b.queue(all[1:], 6, hold, s.lasting())
		if during {
			var releasing sync.WaitGroup
			releasing.Go(func() {
				time.Sleep(hold / 2)
				b.free(leases...)
			})
			swap()
			releasing.Wait()
		} else {
			swap()
			b.free(leases...)
		}
		b.all(waiting, "a failover")
	}
	s.moveTo(s.nodes, s.nodes) // the former replicas have connections that s.outside does not know
	s.recovers(all...)
}
