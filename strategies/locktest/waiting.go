package locktest

// This file contains the checks of waits: how waits end, which releases must wake a waiter, and in which order waiters
// get the lock.
//
// Most holders have longTTL, which is far longer than the patience. So a waiter that misses a release still waits when
// the patience has passed, and overdue reports the lost wake-up. The holder and most waiters are in different instances
// (both[0] and both[1]), because within one instance a lock may pass a release on without the servers.
//
// The checks from releaseBeforeTheWait to killedConnections delay or cut a waiter's connections, so that the message of
// a release does not reach the waiter. All but the last repeat this with step 0, 1, 2 and so on: the fault hits the
// waiter's first command, then its second, until the waiter sends no further command. The checks from fifo to
// overtaking judge the order.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/strategies"
)

// cancelledWait ends waits by their contexts: by a deadline, by a cancellation, and by a context that is already done.
// Each wait must return its context's error and leave the lock with its holder.
func cancelledWait(s *stage) {
	both := s.several(2, longTTL)
	leases := s.fill(both[0], "key")
	s.full(both[1], "key")
	timed, cancel := context.WithTimeout(context.Background(), 40*time.Millisecond)
	defer cancel()
	ended, end := context.WithCancel(context.Background())
	end()
	for _, wait := range []struct {
		what string
		ctx  context.Context
		want error
	}{
		{"a wait with a deadline", timed, context.DeadlineExceeded},
		{"an acquire with an ended context", ended, context.Canceled},
	} {
		s.waiterFor(both[1], "key", func(_ context.Context, key string) (strategies.Lease, error) {
			return both[1].Acquire(wait.ctx, key)
		}).refused(wait.what, wait.want)
	}
	w := s.waiter(both[1], "key")
	w.parked()
	w.cancel()
	w.refused("a cancelled wait", context.Canceled)

	if !s.held(both[1], "key") {
		s.errorf("a cancelled wait freed the holder's lock")
	}
	s.release(leases...)
	s.release(s.fill(both[1], "key")...) // no ended wait may have taken a permit
}

// refused reports a failure unless the waiter's call returns, within the patience, an error that wraps want.
func (w *waiter) refused(what string, want error) {
	switch {
	case !w.within(w.s.patience):
		w.s.fatalf("%s keeps waiting although its context has ended", what)
	case w.err == nil:
		w.s.brokenNow(exclusive, "%s was granted the lock while other clients held all its permits", what)
	case !errors.Is(w.err, want):
		w.s.errorf("%s returned %q, want %q", what, w.err, want)
	}
}

// cancelledAnytime cancels waiters at random moments shortly before and after a release, so that some are cancelled
// while they are woken or granted the lock. The lock must not stay held, and the waiter behind the cancelled waiters
// must get it. All waiters are in one instance. The release of another instance's waiter would wake a waiter whose
// wake-up was lost, and so hide the fault.
func cancelledAnytime(s *stage) {
	const impatient = 12
	both := s.several(2, longTTL)
	for round := range s.rounds {
		leases := s.fill(both[0], "key")
		waiting := s.crowd(both[1], "key", impatient)
		// patient queues behind the waiters that give up. It shows whether one of these waiters has kept the lock or the
		// wake-up.
		patient := s.crowd(both[1], "key", 1)[0]

		// The wake-up of a release may reach a waiter that is just giving up. This waiter must pass the wake-up on.
		var all sync.WaitGroup
		anytime := func(end func()) {
			all.Go(func() {
				shortly(time.Duration(rand.Int64N(int64(300 * time.Microsecond))))
				end()
			})
		}
		together := func() {
			for _, w := range waiting {
				w.cancel()
			}
		}
		switch {
		case round == 0: // all at once, before the release
			together()
			for _, w := range waiting {
				w.end()
			}
		case round%2 == 0:
			anytime(together)
		default:
			for _, w := range waiting {
				anytime(w.cancel)
			}
		}
		s.release(leases[0])
		all.Wait()
		for _, w := range waiting {
			w.end()
			if w.err != nil && !errors.Is(w.err, context.Canceled) {
				s.errorf("a cancelled wait returned %q", w.err)
			}
		}
		patient.overdue("a waiter behind waiters that gave up is still waiting although the lock is free")
		patient.finish()
		s.release(leases[1:]...)
		// A waiter that is cancelled during its grant must return the permit.
		if !s.eventually(func() bool { return s.free(both[1], "key") }) {
			s.brokenNow(ungranted, "all clients have released the lock or given up, but the lock is not free")
		}
	}
}

// crowd starts n waiters together. It returns when all of them seem to wait, and does not spend long on making sure.
func (s *stage) crowd(i *instance, key string, n int) []*waiter {
	asked := i.probe.Counts().Attempts
	var waiting []*waiter
	for range n {
		waiting = append(waiting, s.waiter(i, key))
	}
	for range 20 {
		if time.Sleep(time.Millisecond); i.probe.Counts().Attempts >= asked+int64(n) {
			break
		}
	}
	waiting[n-1].quiet()
	return waiting
}

// shortly waits for d in a busy loop, because d may be shorter than the resolution of the system's timers.
func shortly(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		runtime.Gosched()
	}
}

// givenUpWaits checks that cancelled waits leave no keys and channels while the instances live. The waits for the first
// key may leave a few, such as a channel of their instance, but waits for further keys must not add any.
func givenUpWaits(s *stage) {
	both := s.several(2, longTTL)
	give := func(key string) {
		leases := s.fill(both[0], key)
		var waiting []*waiter
		for n := range 4 {
			waiting = append(waiting, s.waiter(both[n%2], key))
		}
		waiting[3].parked()
		for _, w := range waiting {
			w.end()
		}
		s.release(leases...)
	}
	give("the first")
	standing := s.leftovers()
	for n := range 4 {
		give(fmt.Sprint("another ", n))
	}
	s.gone("after cancelled waits, keys and channels", func() []string {
		return slices.DeleteFunc(s.leftovers(), func(left string) bool { return slices.Contains(standing, left) })
	})
}

// steps is the largest number of commands of one call that a check interrupts. No strategy needs more commands before
// it waits.
const steps = 8

// soon is how long a check waits for an event that some strategies never cause, such as a further command of a waiter.
const soon = 250 * time.Millisecond

// releaseBeforeTheWait releases the lock just before a waiter's first command, in the next round just before its
// second, and so on until no command is left. One of these moments is between the waiter's check of the lock and its
// subscription. A lock that does not check again after it has subscribed misses the release.
func releaseBeforeTheWait(s *stage) {
	both := s.several(2, longTTL)
	for step := range steps {
		leases := s.fill(both[0], "key")
		blockade := both[1].wire.Hold(netfault.Write, step)
		w := s.waiter(both[1], "key")
		caught := blockade.Catches(soon)
		s.release(leases[0])
		blockade.Open()
		w.overdue("a waiter is still waiting for a lock that was released just before its command %d", step+1)
		w.finish()
		s.release(leases[1:]...)
		if step == 0 && !caught && s.ownConnections(both[1]) {
			s.notTried("the suite cannot delay its commands, because the lock does not dial with the Options in its Config")
		}
		// The waiter has sent all its commands before this step, so no further round is needed.
		if !caught {
			releaseDuringAWait(s, both)
			return
		}
	}
	s.Logf("the lock was released before each of a waiter's first %d commands, but the waiter sends more", steps)
}

// releaseDuringAWait delays one command of a waiter in each round. While the command is delayed, it starts a second
// waiter in the same instance, releases the lock and cancels the first waiter. The second waiter may have joined the
// subscription of the first one. If Redis has not confirmed this subscription yet, the message of the release does not
// arrive, so the second waiter must check the lock itself.
func releaseDuringAWait(s *stage, both []*instance) {
	for step := range steps {
		leases := s.fill(both[0], "key")
		blockade := both[1].wire.Hold(netfault.Write, step)
		first := s.waiter(both[1], "key")
		if !blockade.Catches(soon) {
			blockade.Open()
			first.end()
			s.release(leases...)
			return
		}
		second := s.waiter(both[1], "key")
		second.within(soon / 2) // it waits, or its commands queue behind the delayed one
		s.release(leases[0])
		first.end()
		blockade.Open()
		second.overdue("a waiter that started while command %d of another waiter was delayed is still waiting although "+
			"the lock is free", step+1)
		second.finish()
		s.release(leases[1:]...)
	}
}

// releaseDuringReconnect cuts the connections on which a waiter waits. It releases the lock before the waiter has
// reconnected, and in later rounds before each command that the waiter then sends.
func releaseDuringReconnect(s *stage) {
	both := s.several(2, longTTL)
	for step := -3; step < steps; step++ { // several rounds without a step, in case the waiter has not subscribed yet
		leases := s.fill(both[0], "key")
		w := s.waiter(both[1], "key")
		w.parked()
		time.Sleep(20 * time.Millisecond) // on a slow machine the waiter may not have subscribed yet
		// With a negative step, the lock is released before the waiter can dial. With any other step, it is released before
		// the waiter's command number step+1.
		blockade := both[1].wire.Hold(netfault.Dials, 0)
		if step >= 0 {
			blockade.Open()
			blockade = both[1].wire.Hold(netfault.Write, step)
		}
		cut, caught := 0, false
		for try := 0; !caught && (try < 2 || cut == 0 && try < 5); try++ { // the waiter may have subscribed only after a cut
			cut += s.cut()
			caught = blockade.Catches(soon / 2)
		}
		s.release(leases[0])
		blockade.Open()
		w.overdue("a waiter is still waiting for a lock that was released while it reconnected (step %d)", max(step+1, 0))
		w.finish()
		s.release(leases[1:]...)
		switch {
		case cut == 0 && step < 0:
			s.notApplicable("its waiters have no connection that the suite could cut: none subscribes, blocks or tracks keys")
		case !caught && step < 0 && s.ownConnections(both[1]):
			s.notTried("the suite cannot delay its reconnection, because the lock does not dial with the Options in its Config")
		case cut == 0 || !caught && step >= 0:
			return
		}
	}
}

// killedConnections lets waiters wait, kills the connections on which they wait, and then releases the lock. The
// message of the release may then reach no waiter, so each waiter must check the lock after it has reconnected.
func killedConnections(s *stage) {
	const rounds, waiters = 8, 5
	both := s.several(2, longTTL)
	cut := 0
	for round := range rounds {
		leases := s.fill(both[0], "key")
		var waiting []*waiter
		for n := range waiters {
			waiting = append(waiting, s.waiter(both[n%2], "key"))
		}
		time.Sleep(time.Duration(round%4) * 4 * time.Millisecond) // before, while and after the clients begin to wait
		cut += s.cut()
		if round%2 == 0 {
			time.Sleep(time.Millisecond)
		}
		s.release(leases[0])
		for _, w := range waiting {
			w.overdue("a waiter whose connection was killed is still waiting although the lock is free")
			w.finish()
		}
		s.release(leases[1:]...)
	}
	if cut == 0 {
		s.notApplicable("its waiters have no connection that the suite could kill: none subscribes, blocks or tracks keys")
	}
}

// cut kills the connections on which clients wait for a release: those that subscribe, block or use client tracking. It
// spares connections that were open before the check, and returns the number of killed connections.
func (s *stage) cut() int {
	killed := 0
	for _, o := range s.outside {
		for _, c := range s.connections(o) {
			// CLIENT LIST flags a subscriber with P, a blocked client with b, and client tracking with t, in broadcast mode with
			// B.
			if o.before[c["id"]] || !strings.ContainsAny(c["flags"], "PbtB") {
				continue
			}
			// n is 0 if the connection was already closed.
			n, err := o.ClientKillByFilter(context.Background(), "ID", c["id"]).Result()
			s.must("kill a connection", err)
			killed += int(n)
		}
	}
	return killed
}

// fifo starts waiters in several instances, one after the other. They must get the lock in that order.
func fifo(s *stage) {
	const waiters = 8
	instances := s.several(3, longTTL)
	leases := s.fill(instances[0], "key")
	order := make(chan int, waiters)
	var waiting []*waiter
	for n := range waiters {
		w := s.background(instances[n%3], "key", func(ctx context.Context) error {
			lease, err := instances[n%3].Acquire(ctx, "key")
			if err != nil {
				return err
			}
			order <- n
			return lease.Release(ctx)
		})
		w.parked()
		waiting = append(waiting, w)
	}
	s.release(leases[0]) // only one permit, so that waiters are served one at a time
	for _, w := range waiting {
		w.finish()
	}
	for want := range waiters {
		if got := <-order; got != want {
			s.fatalf("waiter %d got the lock although it was waiter %d's turn", got, want)
		}
	}
	s.release(leases[1:]...)
}

// fencing checks that each token is larger than the previous token, both when several instances acquire in turn and
// after the death of a holder. A lock that keeps its counter in the lease's key repeats tokens after Redis has expired
// that key.
func fencing(s *stage) {
	var last int64
	grows := func(lease strategies.Lease) {
		fenced, ok := strategies.As[strategies.Fenced](lease)
		if !ok {
			s.fatalf("the lock's Info claims fencing, but the lock's leases have no FencingToken")
		}
		switch token := fenced.FencingToken(); {
		case token == last:
			s.fatalf("token %d was granted twice", token)
		case token < last:
			s.fatalf("token %d came after the larger token %d", token, last)
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

// overtaking lets clients of two instances acquire repeatedly while other clients wait in a third instance. It counts
// how often each repeating client gets the lock before a waiter that requested it earlier.
//
// Package handoff keeps the bound of Claims.Bounded, as long as no lease runs out and no waiter misses its turn, for
// the following reason. An instance with waiters has either a lease or one slot in Redis's queue, which is first in,
// first out. Between two leases of the waiter's instance, or between the queueing of its slot and its next lease, each
// other instance gets at most one lease. This lease gives one turn to each client that waits when the lease is granted.
// Each lease of the waiter's own instance serves at least its first waiter, in the order of their arrival. So each
// earlier waiter of the same instance costs at most one such round, and the waiter itself costs one more round.
func overtaking(s *stage) {
	// The rounds vary how long a client of the rush holds the lock, which instance has the first holder, whether the rush
	// or the patients queue first, and the number of patients.
	three := s.several(3, longTTL)
	for round := range 6 {
		r := &rush{stage: s, hold: time.Duration(round%2) * 100 * time.Microsecond}
		r.play(three, three[round%3], round < 3, 1+round/4)
		if s.Failed() {
			return
		}
	}
}

// rush is a set of clients that acquire again immediately after each release, together with the patients that wait for
// the lock.
type rush struct {
	*stage
	hold    time.Duration // for each turn
	clients []*waiter

	mu       sync.Mutex
	over     bool // each client stops after its current turn
	patients []*patient
}

// patient is a waiter that may be overtaken. before[i] counts how often client i of the rush requested the lock later
// than the patient and got it first.
type patient struct {
	*waiter
	served bool
	before map[int]int
}

// play lets all clients wait until one holder releases the lock. The rush is in the first two instances, and the
// patients are in the third.
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
		c.returned("a client whose last turn is over")
	}
}

// wait starts another patient and returns when the servers have received its commands, so that the next turns of the
// rush begin after its request.
func (r *rush) wait(on *instance) {
	p := &patient{before: map[int]int{}}
	p.waiter = r.background(on, "key", func(ctx context.Context) error {
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

// begin starts the clients of the rush and returns when all of them wait. If the first holder released before all of
// them wait, only the patients would compete for the lock.
func (r *rush) begin(on []*instance) {
	const clients = 4 // per instance
	for n, instance := range on {
		for c := range clients {
			r.clients = append(r.clients, r.background(instance, "key", func(ctx context.Context) error {
				for r.turn(ctx, n*clients+c, instance) {
				}
				return nil
			}))
		}
		// settle waits for one more attempt than first.attempts. With this offset it waits until each client of the
		// instance has made an attempt.
		first := r.clients[n*clients]
		first.attempts += clients - 1
		first.settle()
	}
}

// turn acquires and releases the lock once. It returns false if a call failed or the rush is over.
func (r *rush) turn(ctx context.Context, client int, on *instance) bool {
	r.mu.Lock()
	earlier := r.patients // the patients that requested the lock before this turn
	r.mu.Unlock()
	lease, err := on.Acquire(ctx, "key")
	if err != nil {
		if ctx.Err() == nil {
			r.broken(granting, "an acquire by one of many competing clients returned %q", err)
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

// count records that a client got the lock although the given patients had requested it earlier. If the client has
// overtaken a patient more often than Claims.Bounded permits, count reports the failure and all clients stop.
func (r *rush) count(client int, earlier []*patient) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	// ahead is the number of patients that requested the lock before p.
	for ahead, p := range earlier {
		if p.served {
			continue
		}
		if p.before[client]++; p.before[client] > ahead+1 && !r.over {
			r.over = true
			r.errorf("a client got the lock %d times before a client that had requested it earlier and had %d earlier "+
				"clients in its own instance",
				p.before[client], ahead)
		}
	}
	return !r.over
}
