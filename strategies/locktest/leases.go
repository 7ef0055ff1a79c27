package locktest

// This file contains the checks of leases: when leases end, how they are extended and renewed, and which validity they
// report.
//
// A check ends a lease by the death of its holder (die) or by not releasing it. Leases that must run out have shortTTL,
// and leases that must last have longTTL. A standstill of the machine can end a short lease too early. A step that a
// standstill could spoil therefore returns its fault as a string to repeatIfDisturbed, which repeats the step with
// twice the TTL if the machine stood still. A fault that no standstill can cause ends the check directly, with fatalf
// or brokenNow.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// die closes an instance without releasing its leases. They stay in the store, as after the death of the process.
func (s *stage) die(i *instance) {
	if err := i.Close(); err != nil {
		s.fatalf("close: %v", err)
	}
}

// deadHolder checks that a waiter gets the lock of a dead holder after the TTL, although no message announces the end
// of the lease. A lease without a TTL fails this check.
func deadHolder(s *stage) {
	dead, alive := s.open(shortTTL), s.open(longTTL)
	s.fill(dead, "key")
	w := s.waiter(alive, "key")
	w.settle() // not parked, because on a busy machine the lease may have ended and the waiter may have the lock
	s.die(dead)
	if !w.within(s.patience) {
		s.fatalf("a holder with a TTL of %v has died, but %v later its lock is not free", shortTTL, s.patience)
	}
	w.finish()
	s.release(s.fill(alive, "key")...) // the other permits must be free too
}

// lateRelease checks that a client that has lost a lease can neither release nor extend the lease of the next holder. A
// lock that deletes its key without comparing the owner fails this check.
func lateRelease(s *stage) {
	dead, alive, third := s.open(shortTTL), s.open(longTTL), s.open(longTTL)
	// The check loses both leases. Then the lock on the key "another" is free, and the lock on the key "key" has a next
	// holder.
	free, lease := s.fill(dead, "another")[0], s.fill(dead, "key")[0]
	if s.info.Claims.Watchdog { // without a watchdog the leases run out anyway
		s.die(dead)
		if s.ownConnections(dead) || s.info.Driver {
			s.notTried("after Close it has no connection on which to release its leases; let the lock use the Config's " +
				"clients or Options")
		}
	}
	// Either lease may run out first, because the watchdog may have renewed one of them later than the other.
	if !s.eventually(func() bool { return !s.held(third, "key") && !s.held(third, "another") }) {
		s.brokenNow(recovering, "a holder with a TTL of %v has died, but %v later its lock is not free", shortTTL,
			s.patience)
	}
	s.notHeld("the release of a lease that ran out", free)
	next := s.fill(alive, "key")
	s.full(third, "key")
	if extender, ok := strategies.As[strategies.Extender](lease); ok {
		longer := func(ctx context.Context) error { return extender.Extend(ctx, longTTL) }
		if err := within(s.patience, longer); !errors.Is(err, strategies.ErrNotHeld) {
			s.errorf("extending a lost lease returned %v, want ErrNotHeld", err)
		}
	}
	s.notHeld("the release of a lost lease", lease)
	if !s.held(third, "key") {
		s.fatalf("a late release freed the next holder's lock")
	}
	s.release(next...)
}

// extensions is how often extendsOnce extends a lease by its TTL.
const extensions = 4

// extend checks that an extended lease outlives its first TTL, and that the TTLs of repeated extensions do not add up.
// An extension must set the remaining time and must not add to it.
func extend(s *stage) {
	other := s.open(longTTL)
	s.repeatIfDisturbed(2*shortTTL, func(ttl time.Duration) string { return s.extendsOnce(other, ttl) })
	s.repeatIfDisturbed(2*shortTTL, func(ttl time.Duration) (fault string) {
		i := s.open(ttl)
		lease := s.acquire(i, "key")
		extender, ok := strategies.As[strategies.Extender](lease)
		if !ok {
			_ = s.again(lease) // the lease may have run out by now
			s.notApplicable("its leases cannot be extended")
		}
		leases := []strategies.Lease{lease}
		longer := func(ctx context.Context) error { return extender.Extend(ctx, longTTL) }
		if err := within(s.patience, longer); err != nil { // expected only if the machine stood still for the TTL
			return cmp.Or(fmt.Sprintf("extend: %v", err), s.releaseAll(leases))
		}
		s.believable(i, lease, longTTL)
		if timed, ok := strategies.As[strategies.Timed](lease); ok && time.Until(timed.ValidUntil()) < longTTL/2 {
			s.fatalf("after an extension by %v the lease is valid for only %v", longTTL, time.Until(timed.ValidUntil()))
		}
		time.Sleep(ttl * 4 / 3) // beyond the first TTL, and far from the end of the extension
		// The check acquires the other permits, so that held reports whether the extended lease is still valid.
		leases = append(leases, s.take(other, "key", s.info.Capacity-1)...)
		if !s.held(other, "key") { // no standstill lasts for longTTL
			s.fatalf("an extended lease ended when its first TTL ran out")
		}
		s.release(leases...)
		return ""
	})
}

// extendsOnce lets a holder extend its lease several times and then die. After the last extension the lease must last
// for one TTL. If it lasts for the sum of the extensions, extendsOnce returns this fault.
func (s *stage) extendsOnce(other *instance, ttl time.Duration) (fault string) {
	i, others := s.open(ttl), s.take(other, "extended", s.info.Capacity-1)
	lease := s.acquire(i, "extended")
	extender, ok := strategies.As[strategies.Extender](lease)
	if !ok {
		_ = s.again(lease) // the lease may have run out by now
		s.release(others...)
		s.notApplicable("its leases cannot be extended")
	}
	var last time.Time
	for range extensions {
		again := func(ctx context.Context) error { return extender.Extend(ctx, ttl) }
		if err := within(s.patience, again); err != nil { // expected only if the machine stood still for the TTL
			return cmp.Or(fmt.Sprintf("extend: %v", err), s.releaseAll(others))
		}
		last = time.Now()
	}
	s.die(i)
	for s.held(other, "extended") {
		// The limit is 3 TTLs. A correct lease ends after 1 TTL, and a lease whose extensions add up ends after almost 4
		// TTLs.
		if lasted := time.Since(last); lasted > extensions*ttl*3/4 {
			return fmt.Sprintf("a lease of %v was extended by its TTL %d times and lasted for %v after the last extension: "+
				"extensions add up", ttl, extensions, lasted.Round(time.Millisecond))
		}
		time.Sleep(ttl / 20)
	}
	s.release(others...)
	return ""
}

// validity checks that the reported end of a lease's validity is at most one TTL after the request, and that no other
// client gets the lock before that end. A holder may work until the reported end, so an end that is reported too late
// would let two clients work at the same time.
func validity(s *stage) {
	alive := s.open(longTTL)
	for range 4 {
		lease := s.acquire(alive, "key")
		s.believable(alive, lease, longTTL)
		s.release(lease)
	}
	s.repeatIfDisturbed(2*shortTTL, func(ttl time.Duration) string { return s.validAfterItsWait(alive, ttl) })
	const enough = 2 // a single lease may pass by chance
	for attempt, right, ttl := 1, 0, shortTTL; ; attempt++ {
		late := s.outlived(alive, ttl)
		// A grant long after the end of the validity proves nothing, because the lock may have become free before that end
		// without being granted.
		if late < ttl/5 {
			if right++; right == enough {
				return
			}
			continue
		}
		if ttl *= 2; attempt >= attempts {
			s.notJudged("another client got the lock of a dead holder only %v after the end of its TTL of %v, so the check "+
				"cannot tell when the lock became free", late, ttl/2)
		}
		s.Logf("another client got the lock only %v after the end of a TTL of %v; the check tries again", late, ttl/2)
	}
}

// validAfterItsWait lets a client wait for longer than its TTL. It returns a fault if the lease was no longer valid
// when it was granted, as with a lock that counts the TTL from the beginning of the wait.
func (s *stage) validAfterItsWait(holder *instance, ttl time.Duration) (fault string) {
	i, held := s.open(ttl), s.fill(holder, "key")
	w := s.waiterFor(i, "key", i.Acquire)
	w.parked()
	time.Sleep(ttl * 3 / 2)
	s.release(held...)
	w.finish()
	timed, ok := strategies.As[strategies.Timed](w.lease)
	if !ok {
		s.notApplicable("its leases do not report the end of their validity")
	}
	if ended := w.over.Sub(timed.ValidUntil()); ended > 0 {
		fault = fmt.Sprintf("a lease of %v that was granted after a wait reports that its validity ended %v before the grant",
			ttl, ended)
	}
	_ = s.again(w.lease) // the lease may have run out by now
	return fault
}

// outlived lets a holder die and returns how long after the end of its lease's validity the lock is granted again. A
// grant before this end fails the check, because the dead holder could still have been working.
func (s *stage) outlived(alive *instance, ttl time.Duration) time.Duration {
	dead := s.open(ttl)
	timed, ok := strategies.As[strategies.Timed](s.fill(dead, "key")[0])
	if !ok {
		s.notApplicable("its leases do not report the end of their validity")
	}
	s.die(dead)
	next := s.waiterFor(alive, "key", alive.Acquire)
	granted := s.firstGrant(alive, next, ttl)
	next.finish()
	late := granted.Sub(timed.ValidUntil())
	if late < 0 {
		s.fatalf("another client got the lock %v before the end of a lease's validity", -late)
	}
	s.release(next.lease)
	s.release(s.fill(alive, "key")...) // the other permits must be free too
	return late
}

// firstGrant returns the time at which the waiter, or a repeated try-lock, obtains the lock of a dead holder. The
// try-lock is needed because a waiter with a long backoff notices a free lock late.
func (s *stage) firstGrant(i *instance, waiter *waiter, ttl time.Duration) time.Time {
	_, tries := strategies.As[strategies.Trier](i.Locker)
	for end := time.Now().Add(s.patience); !waiter.within(ttl / 50); {
		if time.Now().After(end) {
			s.brokenNow(recovering, "a holder with a TTL of %v has died, but %v later its lock is not free", ttl,
				s.patience)
		}
		if !tries {
			continue
		}
		if lease := s.asks(i, "key", s.patience); lease != nil {
			granted := time.Now()
			s.release(lease)
			return granted
		}
	}
	return waiter.over
}

// believable checks that a lease's validity ends at most one TTL after its instance sent its last command, because the
// TTL began at that command or earlier. It checks nothing if the lease does not report the end of its validity, or if
// the suite does not see the command.
func (s *stage) believable(i *instance, lease strategies.Lease, ttl time.Duration) {
	timed, ok := strategies.As[strategies.Timed](lease)
	if !ok {
		return
	}
	// sent is zero if the lock opens its own connections, on which the suite sees no command.
	until, sent := timed.ValidUntil(), i.wire.LastWrite()
	if over := until.Sub(sent.Add(ttl)); over > 0 && !sent.IsZero() {
		s.brokenNow(valid,
			"a lease with a TTL of %v reports a validity that ends %v later than one TTL after its last command was sent", ttl,
			over)
	}
}

// callFor is a method of strategies.Termed that takes the TTL of the lease as an argument.
type callFor struct {
	name string
	do   func(locker strategies.Termed, ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error)
}

// callTTL checks that the TTL of a call replaces the Locker's TTL, whether it is longer or shorter, and that no
// watchdog renews the lease. A lock fails this check if it ignores the TTL of a call, if its watchdog renews the lease,
// or accepts a TTL below a millisecond.
func callTTL(s *stage) {
	short, long, other := s.open(shortTTL), s.open(longTTL), s.open(longTTL)
	calls := []callFor{
		{"AcquireFor", strategies.Termed.AcquireFor},
		{"TryAcquireFor", strategies.Termed.TryAcquireFor},
	}
	var lasting []strategies.Lease
	for _, c := range calls {
		lasting = append(lasting, s.longer(short, c)...)
		s.refusesTTLs(long, c)
		s.runsOut(long, other, "short by "+c.name, c, shortTTL)
		s.runsOut(short, other, "not renewed by "+c.name, c, 2*shortTTL)
	}
	for _, c := range calls {
		// The Locker's TTL has passed during runsOut, so a lock that ignores the TTL of the call is free by now.
		if !s.held(other, c.name) { // no standstill lasts for longTTL
			s.fatalf("a lease acquired by %s for %v ended when the Locker's shorter TTL ran out", c.name, longTTL)
		}
	}
	s.release(lasting...)
}

// waiterOf starts a client that makes the call c in the background. It ends the check if the lock has no such call.
func (s *stage) waiterOf(i *instance, key string, c callFor, ttl time.Duration) *waiter {
	termed, ok := strategies.As[strategies.Termed](i.lock)
	if !ok {
		s.notApplicable("it cannot set the TTL of a single call")
	}
	return s.waiterFor(i, key, func(ctx context.Context, key string) (strategies.Lease, error) {
		return c.do(termed, ctx, s.named(key), ttl)
	})
}

// fillFor acquires all permits of a key with the call c. It repeats a call that failed, because a lease with a short
// TTL may run out before a busy machine returns it.
func (s *stage) fillFor(i *instance, key string, c callFor, ttl time.Duration) (leases []strategies.Lease) {
	for range s.info.Capacity {
		err := errors.New("the call has not returned")
		if !s.eventually(func() bool {
			w := s.waiterOf(i, key, c, ttl)
			if w.within(s.patience) {
				err = w.err
			}
			if err == nil {
				leases = append(leases, w.lease)
			}
			return err == nil
		}) {
			s.brokenNow(granting, "%s for %v failed on a free lock: %v", c.name, ttl, err)
		}
	}
	return leases
}

// longer acquires all permits with a TTL longer than the Locker's and checks the validity of the last lease.
func (s *stage) longer(i *instance, c callFor) []strategies.Lease {
	asked := time.Now()
	leases := s.fillFor(i, c.name, c, longTTL)
	last := leases[len(leases)-1]
	s.believable(i, last, longTTL)
	if timed, ok := strategies.As[strategies.Timed](last); ok {
		if valid := timed.ValidUntil().Sub(asked); valid < longTTL*9/10 { // a quorum subtracts its clock drift
			s.fatalf("%s for %v returned a lease that is valid for only %v", c.name, longTTL, valid)
		}
	}
	return leases
}

// refusesTTLs requests leases with TTLs below a millisecond, the unit of Redis's TTLs. The lock must return an error
// without sending a command.
func (s *stage) refusesTTLs(i *instance, c callFor) {
	for _, ttl := range []time.Duration{-longTTL, 0, time.Millisecond - 1} {
		before := i.probe.Counts().Attempts
		w := s.waiterOf(i, "refused", c, ttl)
		switch {
		case !w.within(s.patience):
			s.fatalf("%s for %v has not returned, want an error", c.name, ttl)
		case w.err == nil || w.lease != nil:
			s.fatalf("%s for %v was granted, want an error", c.name, ttl)
		case i.probe.Counts().Attempts > before:
			s.errorf("%s for %v sent a command before it was refused", c.name, ttl)
		}
	}
}

// runsOut acquires leases with a short TTL and never releases them. Another client must get the lock after they end,
// and not before. A watchdog that renewed the leases would keep the lock beyond the patience.
func (s *stage) runsOut(i, other *instance, key string, c callFor, ttl time.Duration) {
	lease := s.fillFor(i, key, c, ttl)[0]
	next := s.waiterFor(other, key, other.Acquire)
	if !next.within(s.patience) {
		s.fatalf("a lease acquired by %s for %v has not run out after %v", c.name, ttl, s.patience)
	}
	next.finish()
	if timed, ok := strategies.As[strategies.Timed](lease); ok && next.over.Before(timed.ValidUntil()) {
		s.brokenNow(valid, "another client got the lock %v before the end of a lease's validity",
			timed.ValidUntil().Sub(next.over))
	}
	s.release(next.lease)
	s.release(s.fill(other, key)...) // the other permits must be free too
}

// watchdog checks that the watchdog keeps all leases of a living holder and none of a dead holder, and that it never
// renews another holder's lease.
func watchdog(s *stage) {
	const ttl = 3 * shortTTL
	other := s.open(longTTL)
	var i *instance
	s.repeatIfDisturbed(ttl, func(ttl time.Duration) string {
		if i != nil { // the watchdog of an earlier attempt may still run
			s.die(i)
		}
		i = s.open(ttl)
		return s.keeps(i, other, ttl)
	})
	s.die(i)
	if !s.eventually(func() bool { return !s.held(other, "key") }) {
		s.fatalf("the watchdog of a dead holder keeps renewing its lease")
	}
	if s.info.OnRedis() { // the suite can delete locks only from Redis
		s.sparesOthers(other)
	}
}

// keeps holds leases for longer than their TTL: first on two keys at the same time, because a faulty watchdog may renew
// only one of the two leases, and then again on the first key. If a check fails, keeps returns the fault. Otherwise it
// leaves the last leases held, so that the caller can let their holder die.
func (s *stage) keeps(i, other *instance, ttl time.Duration) (fault string) {
	leases := append(s.fill(i, "key"), s.fill(i, "second")...)
	fault = lasts(ttl, func() string {
		if !s.held(other, "key") || !s.held(other, "second") {
			return "a living holder's lease ran out"
		}
		return ""
	})
	if watched, ok := strategies.As[strategies.Watched](leases[0]); ok && fault == "" {
		select {
		case <-watched.Lost():
			fault = "a lease was reported as lost while it was held"
		default:
		}
	}
	if fault = cmp.Or(fault, s.releaseAll(leases)); fault != "" {
		return fault
	}

	const released = "a released lock is held again: the watchdog of its lease keeps running"
	// If a watchdog still renewed the released lease, it would take the lock again, and this acquire would wait.
	next := s.waiterFor(i, "key", i.Acquire)
	if !next.within(s.patience) {
		s.fatalf(released)
	}
	next.finish()
	leases = append(s.take(i, "key", s.info.Capacity-1), next.lease)
	fault = lasts(ttl, func() string {
		switch {
		// A faulty watchdog may renew only the first lease on a key, or renew a lease that has been released.
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

// lasts calls look repeatedly for one and a half TTLs, and returns the first fault. A lease that is not renewed runs
// out in that time.
func lasts(ttl time.Duration, look func() string) (fault string) {
	for end := time.Now().Add(ttl * 3 / 2); fault == "" && time.Now().Before(end); time.Sleep(ttl / 20) {
		fault = look()
	}
	return fault
}

// sparesOthers deletes a lock that an instance with a short TTL holds, lets an instance with a long TTL acquire the
// lock, and then lets the first instance die. A watchdog that does not check the owner sets the short TTL on the new
// lease, which then runs out. A standstill of the machine does not change this result.
func (s *stage) sparesOthers(other *instance) {
	loser, next := s.open(shortTTL), s.open(longTTL)
	s.fill(loser, "lost")
	// The holder does not learn of the deletion, so its watchdog continues to renew the lease.
	s.forget("lost")
	// Until loser dies, its watchdog, if faulty, sets the short TTL on this lease.
	leases := s.fill(next, "lost")
	taken := time.Now()
	time.Sleep(2 * shortTTL)
	if !s.ownConnections(loser) {
		s.eventually(func() bool { return loser.wire.LastWrite().After(taken) }) // wait until the watchdog has sent a renewal
	}
	s.die(loser)
	// If the watchdog has set the short TTL on the next holder's lease, this lease runs out here.
	time.Sleep(2 * shortTTL)
	if !s.held(other, "lost") {
		s.fatalf("a lease of %v ran out soon after the death of the previous holder: "+
			"the previous holder's watchdog does not check the owner", longTTL)
	}
	_ = s.releaseAll(leases)
}
