package locktest

import (
	"context"
	"sync"
	"time"
)

// overtaking has clients of two instances acquire again and again while others wait in a
// third, and counts how often each of them is served first although it asked later.
//
// Why package handoff keeps the bound, while no lease runs out and nobody misses his turn: an
// instance with waiters has one place in Redis's queue, which is first in, first out, or a
// lease. Between two leases of the waiter's instance, or from when its place is queued to
// the next, each other instance has its place before it at most once, and so one lease,
// whose turns are of those who wait when it arrives: one for each of its clients. Each lease
// of the waiter's own instance serves the first of its waiters at least, in the order in
// which they came. So of those who were there before him each costs one such round at most,
// and he himself one.
func overtaking(s *stage) {
	three := s.several(3, longTTL)
	for round := range 6 {
		r := newRush(s, time.Duration(round%2)*100*time.Microsecond)
		r.play(three, three[round%3], round < 3, 1+round/4)
		if s.Failed() {
			return
		}
	}
}

// rush is clients who acquire again as soon as they have released, and some who wait.
type rush struct {
	*stage
	ctx  context.Context
	end  context.CancelFunc
	hold time.Duration
	all  sync.WaitGroup

	mu       sync.Mutex
	over     bool
	patients []*patient
}

// patient is one who waits, and how often each client of the rush was served before him
// that asked later.
type patient struct {
	*waiter
	served bool
	before map[int]int
}

func newRush(s *stage, hold time.Duration) *rush {
	r := &rush{stage: s, hold: hold}
	r.ctx, r.end = context.WithCancel(context.Background())
	return r
}

// play has them all wait for one holder: the rush in two of the instances, so many who are
// patient in the third.
func (r *rush) play(three []*instance, holder *instance, rushFirst bool, patients int) {
	defer r.all.Wait()
	defer r.end()
	lease := r.acquire(holder, "key")
	if rushFirst {
		r.begin(three[:2])
	}
	for range patients {
		r.wait(three[2])
	}
	if !rushFirst {
		r.begin(three[:2])
	}
	r.release(lease)
	for _, p := range r.patients {
		p.finish()
	}
	r.stop()
	r.all.Wait()
}

// stop has who rushes have his last turn.
func (r *rush) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}

// wait has one more wait, and returns when the servers have heard of him.
func (r *rush) wait(on *instance) {
	p := &patient{waiter: r.newWaiter(on, "key"), before: map[int]int{}}
	p.run(func(ctx context.Context) error {
		lease, err := on.Acquire(ctx, "key")
		if err != nil {
			return err
		}
		r.mu.Lock()
		p.served = true
		r.mu.Unlock()
		return lease.Release(context.WithoutCancel(ctx))
	})
	p.parked()
	p.heard()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.patients = append(r.patients, p)
}

// begin has clients of those instances come, all at once.
func (r *rush) begin(on []*instance) {
	const clients = 4 // of each
	for n := range clients * len(on) {
		r.all.Go(func() {
			for r.turn(n, on[n%len(on)]) {
			}
		})
	}
}

// turn is one of a client's. It says whether he comes again.
func (r *rush) turn(client int, on *instance) bool {
	r.mu.Lock()
	earlier := r.patients // who had asked before
	r.mu.Unlock()
	lease, err := on.Acquire(r.ctx, "key")
	if err != nil {
		if r.ctx.Err() == nil {
			r.broken(granting, "an acquire in a rush returned %q", err)
		}
		return false
	}
	more := r.count(client, earlier)
	time.Sleep(r.hold)
	if err := lease.Release(context.WithoutCancel(r.ctx)); err != nil {
		r.broken(granting, "the release of a valid lease returned %q", err)
		return false
	}
	return more
}

// count notes that a client has the lock, who asked later than those. When somebody was
// overtaken too often nobody comes again.
func (r *rush) count(client int, earlier []*patient) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for ahead, p := range earlier {
		if p.served {
			continue
		}
		if p.before[client]++; p.before[client] > ahead+1 && !r.over {
			r.over = true
			r.errorf("a client was served %d times before one who had asked earlier, and had %d of its own instance before it",
				p.before[client], ahead)
		}
	}
	return !r.over
}
