package locktest

import (
	"context"

	"github.com/lockbench/lockbench/strategies"
)

// fifo starts waiters of several instances one after the other, and expects them to be served
// in that order.
func fifo(s *stage) {
	const waiters = 8
	instances := s.several(3, longTTL)
	leases := s.fill(instances[0], "key")
	order := make(chan int, waiters)
	var waiting []*waiter
	for n := range waiters {
		w := s.newWaiter(instances[n%3], "key")
		w.run(func(ctx context.Context) error {
			lease, err := w.on.Acquire(ctx, "key")
			if err != nil {
				return err
			}
			order <- n
			return lease.Release(ctx)
		})
		w.parked()
		waiting = append(waiting, w)
	}
	s.release(leases[0]) // one permit, so that one is served at a time
	for _, w := range waiting {
		w.finish()
	}
	for want := range waiters {
		if got := <-order; got != want {
			s.fatalf("waiter %d was served when it was waiter %d's turn", got, want)
		}
	}
	s.release(leases[1:]...)
}

// fencing takes leases on several instances in turn, and one on an instance that dies.
func fencing(s *stage) {
	var last int64
	grows := func(lease strategies.Lease) {
		fenced, ok := strategies.As[strategies.Fenced](lease)
		if !ok {
			s.fatalf("its leases have no FencingToken")
		}
		switch token := fenced.FencingToken(); {
		case token == last:
			s.fatalf("token %d came twice", token)
		case token < last:
			s.fatalf("token %d came after %d", token, last)
		default:
			last = token
		}
	}
	instances := s.several(3, longTTL)
	for range 5 {
		for _, i := range instances {
			lease := s.acquire(i, "key")
			grows(lease)
			s.release(lease)
		}
	}
	if !s.info.Claims.Recovery {
		return
	}
	dead := s.open(shortTTL)
	grows(s.acquire(dead, "key"))
	s.die(dead)
	lease := s.acquire(instances[0], "key")
	grows(lease)
	s.release(lease)
}
