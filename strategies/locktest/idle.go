package locktest

import (
	"fmt"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// idleLocks is how many locks a check uses and then leaves idle.
const idleLocks = 60

// atOnce is how many of them have a waiter at a time.
const atOnce = 10

// used holds each of many locks once, waits for it and passes it on, atOnce locks at a time.
func (s *stage) used(from, to *instance) {
	for first := 0; first < idleLocks; first += atOnce {
		s.pass(from, to, first, atOnce, func() {})
	}
}

// pass holds n locks in one instance, waits for them in another, calls meanwhile, and passes
// the locks on.
func (s *stage) pass(from, to *instance, first, n int, meanwhile func()) {
	var leases []strategies.Lease
	var waiting []*waiter
	for k := first; k < first+n; k++ {
		leases = append(leases, s.fill(from, fmt.Sprint("idle ", k))...)
	}
	for k := first; k < first+n; k++ {
		waiting = append(waiting, s.waiter(to, fmt.Sprint("idle ", k)))
	}
	waiting[n-1].parked()
	meanwhile()
	s.release(leases...)
	for _, w := range waiting {
		w.finish()
	}
}

// idleKeys counts the keys and channels that unused locks leave while the instances live on.
// What all locks share may stay.
func idleKeys(s *stage) {
	both := s.several(2, longTTL)
	s.used(both[0], both[1])
	var left []string
	if !s.eventually(func() bool { left = s.leftovers(); return len(left) < idleLocks/2 }) {
		s.fatalf("%d locks are not used any more, and %d keys and channels are left of them, such as %q", idleLocks,
			len(left), left[0])
	}
}

// connections counts an instance's open connections outside its clients' pools: when all
// locks are idle, and while some have a waiter.
func connections(s *stage) {
	both := s.several(2, longTTL)
	s.used(both[0], both[1])
	for _, i := range both {
		s.opens(i, 0)
	}
	s.pass(both[0], both[1], 0, atOnce, func() {
		for range 20 { // some may not have dialled yet
			s.opens(both[1], atOnce)
			time.Sleep(5 * time.Millisecond)
		}
	})
}

// opens compares an instance's open connections with the declared number, while that many
// waiters wait. A waiter's connection may be kept for the next waiter.
func (s *stage) opens(i *instance, waiters int) {
	declared := s.info.Connections.PerInstance*max(1, len(i.nodes)) + s.info.Connections.PerWaiter*atOnce
	var open int
	if !s.eventually(func() bool { open = i.besidePool(); return open <= declared }) {
		s.fatalf("an instance that has used %d locks, of which %d are waited for, has %d connections beside its "+
			"pool, and declares %d",
			idleLocks, waiters, open, declared)
	}
}

// besidePool returns the number of open connections that are not in the clients' pools.
func (i *instance) besidePool() int {
	pooled := 0
	for _, client := range i.nodes {
		pooled += int(client.PoolStats().TotalConns)
	}
	return i.wire.Connections() - pooled
}
