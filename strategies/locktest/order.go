package locktest

import (
	"context"
	"sync"
	"time"

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

// overtaking has clients of two instances acquire again and again while other clients wait in
// a third instance. It counts how often each client that asked later is served before such a
// waiter.
//
// Why package handoff keeps the bound while no lease runs out and no waiter misses its turn:
// an instance with waiters has either a lease or one place in Redis's queue, which is first
// in, first out. Between two leases of the waiter's instance, or between the queueing of its
// place and its next lease, each other instance is served before it at most once. That one
// lease gives one turn to each client that waits when it arrives. Each lease of the waiter's own
// instance serves at least its first waiter, in the order in which they came. So each earlier
// waiter of the same instance costs at most one such round, and the waiter itself costs one.
func overtaking(s *stage) {
	three := s.several(3, longTTL)
	for round := range 6 {
		r := &rush{stage: s, hold: time.Duration(round%2) * 100 * time.Microsecond}
		r.play(three, three[round%3], round < 3, 1+round/4)
		if s.Failed() {
			return
		}
	}
}

// rush is clients that acquire again as soon as they have released, and some clients that
// wait.
type rush struct {
	*stage
	hold    time.Duration
	clients []*waiter

	mu       sync.Mutex
	over     bool // the current turn of each client is its last
	patients []*patient
}

// patient is a waiter. before counts, for each client of the rush, how often it asked later
// and was served first.
type patient struct {
	*waiter
	served bool
	before map[int]int
}

// play has all of them wait for one holder: the rush in two of the instances, and that many
// patients in the third.
func (r *rush) play(three []*instance, holder *instance, rushFirst bool, patients int) {
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
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	for _, c := range r.clients {
		c.returned("a client that may stop")
	}
}

// wait starts one more patient, and returns when the servers have received its commands.
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

// begin starts clients of those instances, and returns when they wait: a release before that
// would find only the patients.
func (r *rush) begin(on []*instance) {
	const clients = 4 // per instance
	for n, instance := range on {
		last := r.newWaiter(instance, "key")
		last.attempts += clients - 1
		for c := range clients {
			r.clients = append(r.clients, r.background(instance, "key", func(ctx context.Context) error {
				for r.turn(ctx, n*clients+c, instance) {
				}
				return nil
			}))
		}
		last.settle()
	}
}

// turn acquires and releases once. It says whether the client comes again.
func (r *rush) turn(ctx context.Context, client int, on *instance) bool {
	r.mu.Lock()
	earlier := r.patients // the patients that asked before this turn
	r.mu.Unlock()
	lease, err := on.Acquire(ctx, "key")
	if err != nil {
		if ctx.Err() == nil {
			r.broken(granting, "an acquire in a rush returned %q", err)
		}
		return false
	}
	more := r.count(client, earlier)
	time.Sleep(r.hold)
	if err := lease.Release(context.WithoutCancel(ctx)); err != nil {
		r.broken(granting, "the release of a valid lease returned %q", err)
		return false
	}
	return more
}

// count records that a client has the lock although it asked later than those patients. Once
// a patient was overtaken too often, no client comes again.
func (r *rush) count(client int, earlier []*patient) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for ahead, p := range earlier {
		if p.served {
			continue
		}
		if p.before[client]++; p.before[client] > ahead+1 && !r.over {
			r.over = true
			r.errorf("a client was served %d times before one who had asked earlier, and had %d of its own instance "+
				"before it",
				p.before[client], ahead)
		}
	}
	return !r.over
}
