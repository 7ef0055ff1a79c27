package locktest

// This file contains the checks in which the network between an instance and its servers fails during a call. eachStep
// repeats a check with the fault at each command of the call; step 0 is the first command. The fault is planted on the
// instance's connections (instance.wire, a netfault.Path). Another client, third or other, then tries the lock.
//
//	check              planted fault                                  promise under test
//	slowAnswer         replies arrive after the lease has run out     an acquire returns no expired lease
//	lostAnswers        a reply or a command is lost                   one holder, and no lock without a holder
//	lateCommands       commands arrive after the next grant           the next holder keeps its lock
//	cancelledRelease   a release times out and is repeated            the next waiter gets the lock
//	abandonedRelease   a release times out and is not repeated        no watchdog renews the lease
//	abandonedAcquire   an acquire is cancelled and granted later      no watchdog renews the lease
//	renewalAndRelease  a renewal is in transit during the release     the release succeeds, and no loss is reported

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/strategies"
)

// staleTTL is the TTL of leases that must run out soon. They run out even if the machine stands still.
const staleTTL = 100 * time.Millisecond

// lasting returns the TTL of leases that should not run out during a check. For a quorum it is shorter, because the
// keys of a lease may stay on a minority of the nodes until the TTL ends.
func (s *stage) lasting() time.Duration {
	if s.info.Nodes > 1 {
		return 3 * time.Second
	}
	return longTTL
}

// validUntil returns the end of a lease's validity. If the lease does not report it, the result is one TTL after asked,
// the time of the request.
func validUntil(lease strategies.Lease, asked time.Time, ttl time.Duration) time.Time {
	if timed, ok := strategies.As[strategies.Timed](lease); ok {
		return timed.ValidUntil()
	}
	return asked.Add(ttl)
}

// eachStep calls do with step 0, 1, 2 and so on, but at most `steps` times. It stops as soon as do reports that the
// call has no command with this index.
func eachStep(do func(step int) (there bool)) {
	for step := 0; step < steps && do(step); step++ {
	}
}

// heldUp starts a call with begin and holds it up in the network at the given step. While the call is held up, heldUp
// calls its last argument. If the call has no such step, caught is false and it does not.
func (s *stage) heldUp(i *instance, kind netfault.Blocked, step int, begin func() *waiter, meanwhile func(),
) (w *waiter, caught bool) {
	blockade := i.wire.Hold(kind, step)
	w = begin()
	if caught = w.meets(blockade); caught {
		meanwhile()
	}
	blockade.Open()
	return w, caught
}

// again repeats a release until it returns nil or ErrNotHeld or the patience has passed. It returns the last error.
func (s *stage) again(lease strategies.Lease) (err error) {
	for end := time.Now().Add(s.patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = within(time.Second, lease.Release); err == nil || errors.Is(err, strategies.ErrNotHeld) {
			return err
		}
	}
	return err
}

// slowAnswer delays the servers' replies to an acquire until its lease has run out and another client has the lock. It
// tests both an acquire of a free lock and an acquire that waits. The acquire must not return the expired lease.
func slowAnswer(s *stage) {
	holder, other := s.open(longTTL), s.open(longTTL)
	late := s.open(staleTTL)
	_ = s.again(s.acquire(late, "key")) // opens the connections of late; the lease may run out before its release
	for _, waits := range []bool{false, true} {
		eachStep(func(step int) (there bool) {
			s.repeatIfDisturbed(staleTTL, func(time.Duration) (fault string) {
				var ended time.Duration
				// A standstill that repeatIfDisturbed does not notice may delay the acquire by up to a fifth of the TTL.
				if there, ended = s.answeredLate(late, holder, other, waits, step); ended > staleTTL/5 {
					fault = fmt.Sprintf("an acquire returned a lease %v after the lease had expired", ended)
				}
				return fault
			})
			return there
		})
	}
}

// answeredLate lets the first `step` replies to an acquire pass, and delays the others until another client has the
// lock. there reports whether a reply was delayed. ended is the time from the end of the lease's validity to the return
// of the acquire; 0 means that the lease was still valid or that the acquire failed.
func (s *stage) answeredLate(late, holder, other *instance, waits bool, step int) (there bool, ended time.Duration) {
	var held []strategies.Lease
	var blockade *netfault.Blockade
	if waits {
		held = s.fill(holder, "key")
	} else {
		blockade = late.wire.Hold(netfault.Answers, step)
	}
	began := time.Now()
	w := s.waiterFor(late, "key", late.Acquire)
	if waits {
		w.parked()
		blockade = late.wire.Hold(netfault.Answers, step) // only replies after the release count as steps
		s.release(held...)
	}
	caught := w.meets(blockade)
	if !caught {
		blockade.Open()
		w.returned("an acquire")
		if w.err != nil {
			s.fatalf("acquire: %v", w.err)
		}
		_ = s.again(w.lease) // the lease may have run out by now
		return false, 0
	}
	next := s.fill(other, "key") // granted when the lease whose reply is delayed has run out
	taken := time.Now()
	blockade.Open()
	for end := time.Now().Add(soon); !w.isOver() && time.Now().Before(end); { // time to return the stale lease
		time.Sleep(time.Millisecond)
	}
	w.quiet()
	if w.isOver() && w.err == nil && w.over.After(taken) { // a quorum may have returned earlier, with enough replies
		s.fatalf("an acquire whose reply took %v returned a lease of %v while another client held the lock",
			w.over.Sub(began).Round(time.Millisecond), staleTTL)
	}
	s.release(next...)
	if w.returned("an acquire whose reply was delayed"); w.err != nil {
		return true, 0
	}
	ended = max(0, w.over.Sub(validUntil(w.lease, w.over, staleTTL)))
	_ = s.again(w.lease)
	return true, ended
}

// lostAnswers drops one reply per call of an acquire, a release or an extension, after the server has run the command.
// Then it drops commands, so that only the first part of a call reaches the servers.
func lostAnswers(s *stage) {
	s.expiring = true
	holder, third := s.open(longTTL), s.open(longTTL)
	var short *instance
	s.awake(2*shortTTL, func(ttl time.Duration) {
		short = s.open(ttl)
		_ = s.again(s.acquire(short, "key")) // opens the connections of short
		eachStep(func(step int) bool { return s.acquireUnanswered(short, third, step, ttl) })
	})
	s.release(s.acquire(holder, "key"))
	eachStep(func(step int) bool { return s.acquireHeldUnanswered(short, holder, step) })
	eachStep(func(step int) bool { return s.releaseUnanswered(holder, third, step) })
	eachStep(func(step int) bool { return s.extendUnanswered(holder, third, step) })
	for _, what := range []string{"extension", "acquire", "release"} {
		// Step 0 is left out, because a call whose first command is lost has changed nothing on the servers.
		for step := 1; step < steps && s.halfDone(third, what, step); step++ {
		}
	}
}

// halfDone lets the first `step` commands of a call pass, drops the next command and makes no further call. The lock
// must be free after its TTL, whatever the call returned. there reports whether the call has such a command. halfDone
// uses a new instance, because pending releases after an earlier fault would count as commands of the call.
func (s *stage) halfDone(third *instance, what string, step int) (there bool) {
	if s.info.Claims.Watchdog { // a watchdog may renew the lease; abandonedAcquire and abandonedRelease cover such locks
		return false
	}
	short := s.open(2 * shortTTL)
	s.recovers(short)                                 // opens the connections of short
	others := s.take(third, "key", s.info.Capacity-1) // so that only the permit of this call can become free
	defer s.release(others...)
	lease := s.acquire(short, "key")
	extender, extends := strategies.As[strategies.Extender](lease)
	call := lease.Release // also for "extension" if the lease cannot be extended
	switch {
	case what == "extension" && extends:
		call = func(ctx context.Context) error { return extender.Extend(ctx, shortTTL) }
	case what == "acquire":
		_ = s.again(lease) // the lease may have run out by now
		call = func(ctx context.Context) (err error) { lease, err = short.Acquire(ctx, "key"); return err }
	}
	w, there := s.heldUp(short, netfault.LostWrite, step,
		func() *waiter { return s.background(short, "key", call) }, func() {})
	w.returned("a call whose connection was cut")
	if !there {
		if lease != nil {
			_ = s.again(lease)
		}
		return false
	}
	if !s.eventually(func() bool { return !s.held(third, "key") }) {
		s.fatalf("command %d of a call (%s) was lost, and the client made no further call; %v later, long after the "+
			"TTL, the lock is not free", step+1, what, s.patience)
	}
	return true
}

// acquireUnanswered acquires a free lock and drops one reply. While a returned lease is valid, no other client may get
// the lock. After a failed acquire the lock must not stay taken.
func (s *stage) acquireUnanswered(i, third *instance, step int, ttl time.Duration) (lost bool) {
	asked := time.Now()
	asks := func() *waiter { return s.waiterFor(i, "key", i.Acquire) }
	w, lost := s.heldUp(i, netfault.LostAnswer, step, asks, func() {})
	w.returned("an acquire whose reply was lost")
	if w.err == nil {
		until := validUntil(w.lease, asked, ttl)
		if got := s.asks(third, "key", moment); got != nil {
			if s.info.Capacity == 1 && time.Now().Before(until) { // with several permits, got may be a different one
				s.broken(exclusive, "an acquire returned a lease although a reply to it was lost, and another client got the "+
					"lock while that lease was valid")
			}
			s.release(got)
		}
		_ = s.again(w.lease) // the lease may have run out by now
	}
	if !s.eventually(func() bool { return s.free(third, "key") }) {
		s.fatalf("reply %d to an acquire was lost, and the lock was never freed", step+1)
	}
	s.release(s.fill(third, "key")...)
	return lost
}

// acquireHeldUnanswered requests a lock that another client holds and drops one reply. The acquire must not return a
// lease.
func (s *stage) acquireHeldUnanswered(i, holder *instance, step int) (lost bool) {
	held := s.fill(holder, "key")
	blockade := i.wire.Hold(netfault.LostAnswer, step)
	w := s.waiterFor(i, "key", i.Acquire)
	for range 10 { // a waiter may send fewer commands than step, and it does not return
		if lost = blockade.Catches(soon / 10); lost || w.isOver() {
			break
		}
	}
	blockade.Open()
	if lost {
		w.quiet()
	}
	w.cancel()
	w.returned("an acquire that was cancelled after a reply to it was lost")
	if w.err == nil {
		s.brokenNow(exclusive, "an acquire returned a lease although a reply to it was lost and another client held the lock")
	}
	s.release(held...)
	return lost
}

// releaseUnanswered drops one reply to a release. Another client acquires the lock before the holder notices the loss.
// The holder's further commands, such as a retry of the release, must not take the lock from that client.
func (s *stage) releaseUnanswered(holder, third *instance, step int) (lost bool) {
	leases := s.fill(holder, "key")
	var next strategies.Lease
	w, lost := s.heldUp(holder, netfault.LostAnswer, step,
		func() *waiter { return s.background(holder, "key", leases[0].Release) },
		func() { next = s.asks(third, "key", moment) })
	w.returned("a release whose reply was lost")
	if w.err != nil && !errors.Is(w.err, strategies.ErrNotHeld) {
		if err := s.again(leases[0]); err != nil && !errors.Is(err, strategies.ErrNotHeld) {
			s.fatalf("the reply to a release was lost, and the repeated release failed: %q", err)
		}
	}
	if next != nil { // nil if the lock was not yet free when the reply was lost
		if !s.held(third, "key") {
			s.fatalf("a release whose reply was lost freed the next holder's lock")
		}
		if err := s.again(next); err != nil {
			s.fatalf("the reply to a release was lost, and the next holder's release then failed: %q", err)
		}
	}
	s.release(leases[1:]...)
	if !s.eventually(func() bool { return s.free(third, "key") }) {
		s.fatalf("reply %d to a release was lost, and the lock is not free", step+1)
	}
	return lost
}

// extendUnanswered extends a lease and drops one reply. The lease is valid even without the extension, so the holder
// must keep the lock.
func (s *stage) extendUnanswered(holder, third *instance, step int) (lost bool) {
	leases := s.fill(holder, "key")
	defer s.release(leases[1:]...)
	extender, ok := strategies.As[strategies.Extender](leases[0])
	if !ok {
		s.release(leases[0])
		return false
	}
	w, lost := s.heldUp(holder, netfault.LostAnswer, step, func() *waiter {
		return s.background(holder, "key", func(ctx context.Context) error { return extender.Extend(ctx, longTTL) })
	}, func() {})
	w.returned("an extension whose reply was lost")
	if errors.Is(w.err, strategies.ErrNotHeld) {
		s.errorf("the reply to an extension was lost, and the extension returned ErrNotHeld although the lease is valid")
	}
	if !s.held(third, "key") {
		s.fatalf("the reply to an extension was lost, and another client got the lock while the lease was valid")
	}
	if err := s.again(leases[0]); err != nil {
		s.fatalf("the reply to an extension was lost, and the release of the lease then failed: %q", err)
	}
	return lost
}

// lateCommands delays commands of one client in the network until its lease has run out and another client has the
// lock, and then delivers them. The commands are those of a release, an extension and an acquire, and in each round the
// delay begins one command later. A script that does not compare the owner frees the next holder's lock.
func lateCommands(s *stage) {
	s.expiring = true
	l := &lateness{stage: s, next: s.open(longTTL), third: s.open(longTTL)}
	for _, c := range []struct {
		what  string
		begin func() (call func(context.Context) error, lease strategies.Lease)
	}{
		{"release", func() (func(context.Context) error, strategies.Lease) {
			return l.fill(l.stale, "key")[0].Release, nil
		}},
		{"extension", func() (func(context.Context) error, strategies.Lease) {
			lease := l.fill(l.stale, "key")[0]
			extender, ok := strategies.As[strategies.Extender](lease)
			if !ok {
				return lease.Release, nil
			}
			return func(ctx context.Context) error { return extender.Extend(ctx, staleTTL) }, lease
		}},
		{"acquire", func() (func(context.Context) error, strategies.Lease) {
			return func(ctx context.Context) error {
				lease, err := l.stale.Acquire(ctx, "key")
				if err == nil {
					_ = lease.Release(context.WithoutCancel(ctx))
				}
				return err
			}, nil
		}},
	} {
		eachStep(func(step int) bool {
			if l.stale == nil {
				l.stale = l.open(staleTTL)
				_ = l.again(l.acquire(l.stale, "key")) // opens the connections of stale
			}
			call, lease := c.begin()
			return l.arrives(c.what, call, lease, step)
		})
	}
}

// lateness holds the instances that lateCommands uses. If stale is nil, the next step opens a new instance.
type lateness struct {
	*stage
	stale, next, third *instance // its commands arrive late; the next holder; a client that tries the lock
}

// arrives lets the first `step` commands of a call pass, and delays the others until another client has the lock. It
// reports whether a command was delayed. If lease is not nil, arrives releases it at the end.
func (l *lateness) arrives(what string, call func(context.Context) error, lease strategies.Lease, step int) bool {
	kept := l.stale.wire.Hold(netfault.Late, step)
	w := l.background(l.stale, "key", call)
	caught := w.meets(kept)
	w.cancel()
	late := kept.Snap() // breaks the client's connections and keeps the delayed commands
	w.returned("a " + what + " whose connection was cut")
	if l.info.Claims.Watchdog { // otherwise its watchdog would renew the extended lease
		l.die(l.stale)
		l.stale = nil
	}
	leases := l.fill(l.next, "key") // granted when the stale lease has run out
	if err := late.Deliver(); err != nil {
		l.Logf("the late command got no reply: %v", err)
	}
	time.Sleep(staleTTL * 3 / 2) // if the late extension set the next holder's TTL to staleTTL, that lease ends now
	seen := fmt.Sprintf("command %d of a stale %s arrived late", step+1, what)
	if !l.held(l.third, "key") {
		l.fatalf("%s, and freed the next holder's lock", seen)
	}
	if err := l.again(leases[0]); err != nil {
		l.fatalf("%s, and the next holder's release then failed: %q", seen, err)
	}
	l.release(leases[1:]...)
	if lease != nil {
		_ = l.again(lease) // fails, because the lease is lost
	}
	if !l.eventually(func() bool { return l.free(l.third, "key") }) {
		l.fatalf("%s, and the lock is not free", seen)
	}
	return caught
}

// interruption is a point at which the network delays a call: before a command or before the reply to a command.
type interruption struct {
	what string
	kind netfault.Blocked
}

// timeouts are the points at which a release is held up until it times out. The connection of the release then breaks.
var timeouts = []interruption{
	{"before its command", netfault.LostWrite},
	{"before the reply to its command", netfault.LostAnswer},
}

// timesOut delays a release at the step until its context has ended, and returns the release's error. there is false if
// the release has no such step.
func (s *stage) timesOut(i *instance, lease strategies.Lease, n interruption, step int) (there bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), moment)
	defer cancel()
	w, caught := s.heldUp(i, n.kind, step, func() *waiter {
		return s.background(i, "key", func(context.Context) error { return lease.Release(ctx) })
	}, func() { <-ctx.Done() })
	w.returned("a release whose context has ended")
	return caught || w.err != nil, w.err // an error without caught means that the context ended before anything was sent
}

// cancelledRelease cancels a release at each of its steps and repeats it. A waiter must get the lock long before the
// TTL ends, so the lock must not ignore the repeated release.
func cancelledRelease(s *stage) {
	s.expiring = true
	both := s.several(2, s.lasting())
	s.release(s.acquire(both[0], "key")) // opens the connections of the holder
	for _, n := range timeouts {
		eachStep(func(step int) bool {
			leases := s.fill(both[0], "key")
			w := s.waiter(both[1], "key")
			w.parked()
			there, err := s.timesOut(both[0], leases[0], n, step)
			s.repeat(leases[0], err, "timed out "+n.what)
			if !w.within(s.patience) {
				s.fatalf("a release timed out %s %d and was repeated; %v later the waiter has not got the "+
					"lock", n.what, step+1, s.patience)
			}
			w.finish()
			s.release(leases[1:]...)
			return there
		})
	}
	// A release whose context was already done must be repeatable too.
	leases := s.fill(both[0], "key")
	ended, end := context.WithCancel(context.Background())
	end()
	s.repeat(leases[0], leases[0].Release(ended), "had an ended context")
	s.release(leases[1:]...)
	if !s.free(both[1], "key") {
		s.fatalf("a release with an ended context was repeated with a live one, but the lock is not free")
	}
}

// repeat repeats a release that returned err, unless err is nil or ErrNotHeld. It reports an error of the repetition.
func (s *stage) repeat(lease strategies.Lease, err error, how string) {
	if err == nil || errors.Is(err, strategies.ErrNotHeld) {
		return
	}
	if second := s.again(lease); second != nil && !errors.Is(second, strategies.ErrNotHeld) {
		s.errorf("a release %s and returned %q; the repeated release returned %q", how, err, second)
	}
}

// abandonedRelease cancels a release at each of its steps and does not repeat it. The lock must be free when its TTL
// has passed. A watchdog that stops only after a successful release would renew the lease forever.
func abandonedRelease(s *stage) {
	other := s.open(longTTL)
	s.awake(2*shortTTL, func(ttl time.Duration) {
		i := s.open(ttl)
		_ = s.again(s.acquire(i, "key")) // opens the connections of i
		for _, n := range timeouts {
			eachStep(func(step int) bool { return s.abandon(i, other, n, step, ttl) })
		}
	})
}

// abandon cancels a release at one step and waits until the lock is free. It reports whether the release has this step.
func (s *stage) abandon(i, other *instance, n interruption, step int, ttl time.Duration) (there bool) {
	leases := s.fill(i, "key")
	there, _ = s.timesOut(i, leases[0], n, step)
	s.runsOutUnwatched(other, ttl, fmt.Sprintf("a release timed out %s %d", n.what, step+1))
	_ = s.releaseAll(leases[1:])
	s.recovers(i) // the fault has broken a connection of i
	return there
}

// runsOutUnwatched ends the check if an abandoned lock is not free soon after its TTL.
func (s *stage) runsOutUnwatched(other *instance, ttl time.Duration, seen string) {
	// A longer wait would prove nothing, because during a standstill of the machine even a lease with a running watchdog
	// runs out.
	limit := min(s.patience, 5*ttl)
	for end := time.Now().Add(limit); s.held(other, "key"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.fatalf("%s; %v later the lock is not free although its TTL is %v: its watchdog keeps running", seen, limit, ttl)
		}
	}
}

// abandonedAcquire cancels an acquire at each of its steps, while a command or the reply to it is in transit, and then
// delivers the command or reply. If a server then grants the lease, no watchdog may renew it.
func abandonedAcquire(s *stage) {
	s.expiring = true
	other := s.open(longTTL)
	s.awake(2*shortTTL, func(ttl time.Duration) {
		i := s.open(ttl)
		_ = s.again(s.acquire(i, "key")) // opens the connections of i
		for _, n := range []interruption{
			{"before its command", netfault.Write},
			{"before the reply to its command", netfault.Answers},
		} {
			eachStep(func(step int) bool { return s.abandonAcquire(i, other, n, step, ttl) })
		}
	})
}

// abandonAcquire cancels an acquire at one step. It reports whether the acquire has this step.
func (s *stage) abandonAcquire(i, other *instance, n interruption, step int, ttl time.Duration) (there bool) {
	ctx, cancel := context.WithTimeout(context.Background(), moment)
	defer cancel()
	if s.info.Driver { // a driver learns of a timeout with the request, but of a cancellation only when it happens
		ctx, cancel = context.WithCancel(context.Background())
		defer cancel()
		defer time.AfterFunc(moment, cancel).Stop()
	}
	w, there := s.heldUp(i, n.kind, step, func() *waiter {
		return s.waiterFor(i, "key", func(_ context.Context, key string) (strategies.Lease, error) {
			return i.Acquire(ctx, key)
		})
	}, func() {
		<-ctx.Done()
		time.Sleep(moment) // a driver needs this time to receive the cancellation
	})
	w.returned("an acquire whose context has ended")
	if w.err == nil {
		_ = s.again(w.lease)
	}
	s.runsOutUnwatched(other, ttl, fmt.Sprintf("an acquire was cancelled %s %d", n.what, step+1))
	s.recovers(i) // the fault may have broken a connection of i
	return there
}

// renewalAndRelease releases a lease while a renewal or the reply to it is in transit. A renewal that reaches the
// server after the release must neither report the lease as lost nor take the lock again.
func renewalAndRelease(s *stage) {
	const ttl = 4 * shortTTL // a watchdog may renew only when a fifth of the TTL is left
	i, other := s.open(ttl), s.open(longTTL)
	renewed := s.acquire(i, "key")
	for range 3 { // the first renewals load the script (EVALSHA, EVAL, EVALSHA), and later ones must be a single command
		blockade := i.wire.Hold(netfault.Write, 0)
		blockade.Catches(2 * time.Second)
		blockade.Open()
	}
	_ = s.again(renewed)
	for _, n := range []interruption{
		{"on its way to the server", netfault.Write},
		{"waiting for its reply", netfault.Answers},
	} {
		for range 2 {
			s.repeatIfDisturbed(ttl, func(ttl time.Duration) string {
				on := i
				if ttl > 4*shortTTL {
					on = s.open(ttl)
					_ = s.again(s.acquire(on, "key"))
				}
				return s.releaseDuringRenewal(on, other, n)
			})
		}
	}
}

// releaseDuringRenewal releases a lease while a renewal or the reply to it is delayed. It returns the fault, or "".
func (s *stage) releaseDuringRenewal(i, other *instance, n interruption) (fault string) {
	lease := s.acquire(i, "key")
	time.Sleep(5 * time.Millisecond) // so that no command of the acquire is delayed
	blockade := i.wire.Hold(n.kind, 0)
	caught := blockade.Catches(2 * time.Second)
	w := s.background(i, "key", lease.Release)
	for look := 0; look < 10 && !w.isOver(); look++ { // the release may wait for the renewal to end
		time.Sleep(5 * time.Millisecond)
	}
	blockade.Open()
	w.returned("a release during a renewal")
	switch {
	case !caught && s.ownConnections(i):
		s.notTried("the suite cannot delay its renewals, because the lock does not dial with the Options in its Config")
	case !caught:
		s.notJudged("no renewal could be delayed in transit")
	case w.err != nil:
		return fmt.Sprintf("a release while a renewal was %s returned %q", n.what, w.err)
	}
	if watched, ok := strategies.As[strategies.Watched](lease); ok {
		for look := 0; look < 20 && fault == ""; look++ { // counts polls: a stall stops the watchdog too
			select {
			case <-watched.Lost():
				fault = fmt.Sprintf("a lease that was released while a renewal was %s was reported as lost", n.what)
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	if fault == "" && !s.free(other, "key") {
		fault = fmt.Sprintf("a lock that was released while a renewal was %s is not free", n.what)
	}
	return fault
}
