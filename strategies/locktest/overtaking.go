package locktest

import (
	"context"
	"sync"
	"time"
)

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
		r := newRush(s, time.Duration(round%2)*100*time.Microsecond)
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
	ctx  context.Context
	end  context.CancelFunc
	hold time.Duration
	all  sync.WaitGroup

	mu       sync.Mutex
	over     bool
	patients []*patient
}

// patient is a waiter. before counts, for each client of the rush, how often it asked later
// and was served first.
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

// play has all of them wait for one holder: the rush in two of the instances, and that many
// patients in the third.
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

// stop makes the current turn of each client of the rush its last.
func (r *rush) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
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
			r.all.Go(func() {
				for r.turn(n*clients+c, instance) {
				}
			})
		}
		last.settle()
	}
}

// turn acquires and releases once. It says whether the client comes again.
func (r *rush) turn(client int, on *instance) bool {
	r.mu.Lock()
	earlier := r.patients // the patients that asked before this turn
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
