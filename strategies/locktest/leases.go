package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// die ends an instance as the death of its process would: its leases stay.
func (s *stage) die(i *instance) {
	if err := i.Close(); err != nil {
		s.fatalf("close: %v", err)
	}
}

// deadHolder checks that a waiter gets a dead holder's lock.
func deadHolder(s *stage) {
	dead, alive := s.open(shortTTL), s.open(longTTL)
	s.fill(dead, "key")
	w := s.waiter(alive, "key")
	w.settle() // on a busy machine the lease may have run out by now
	s.die(dead)
	if !w.within(s.patience) {
		s.fatalf("a holder with a TTL of %v has died, and %v later its lock is not free", shortTTL, s.patience)
	}
	w.finish()
	s.release(s.fill(alive, "key")...) // the other permits come back too
}

// lateRelease checks that a client that has lost a lease can neither free nor extend the next
// holder's.
func lateRelease(s *stage) {
	dead, alive, third := s.open(shortTTL), s.open(longTTL), s.open(longTTL)
	free, lease := s.fill(dead, "another")[0], s.fill(dead, "key")[0]
	if s.info.Claims.Watchdog { // without one they run out by themselves
		s.die(dead)
		if s.ownConnections(dead) || s.info.Driver {
			s.notTried("its leases run out when it is closed, and then it has no connection to release them on: use " +
				"the Config's clients or Options")
		}
	}
	// Either lease may run out first: one may have been renewed once more than the other.
	if !s.eventually(func() bool { return !s.held(third, "key") && !s.held(third, "another") }) {
		s.brokenNow(recovering, "a holder with a TTL of %v has died, and %v later its lock is not free", shortTTL,
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

// extensions by the TTL that a lease has already, one after the other.
const extensions = 4

// extend checks that an extended lease outlives its first TTL, and that extensions do not add up.
func extend(s *stage) {
	other := s.open(longTTL)
	s.calmly(2*shortTTL, func(ttl time.Duration) string { return s.extendsOnce(other, ttl) })
	s.calmly(2*shortTTL, func(ttl time.Duration) (fault string) {
		i := s.open(ttl)
		lease := s.acquire(i, "key")
		extender, ok := strategies.As[strategies.Extender](lease)
		if !ok {
			_ = s.again(lease) // it may have run out
			s.notApplicable("its leases cannot be extended")
		}
		leases := []strategies.Lease{lease}
		longer := func(ctx context.Context) error { return extender.Extend(ctx, longTTL) }
		if err := within(s.patience, longer); err != nil { // too late, if the machine stood still
			return cmp.Or(fmt.Sprintf("extend: %v", err), s.releaseAll(leases))
		}
		s.believable(i, lease, longTTL)
		if timed, ok := strategies.As[strategies.Timed](lease); ok && time.Until(timed.ValidUntil()) < longTTL/2 {
			s.fatalf("after extending by %v it is valid for %v", longTTL, time.Until(timed.ValidUntil()))
		}
		time.Sleep(ttl * 4 / 3)
		leases = append(leases, s.take(other, "key", s.info.Capacity-1)...)
		if !s.held(other, "key") { // no machine stands still for so long
			s.fatalf("an extended lease ran out with its first TTL")
		}
		s.release(leases...)
		return ""
	})
}

// extendsOnce has a holder extend its lease again and again, and die. It returns what is wrong: after the last
// extension the lease lasts for its TTL, not for the sum of all.
func (s *stage) extendsOnce(other *instance, ttl time.Duration) (fault string) {
	i, others := s.open(ttl), s.take(other, "extended", s.info.Capacity-1)
	lease := s.acquire(i, "extended")
	extender, ok := strategies.As[strategies.Extender](lease)
	if !ok {
		_ = s.again(lease) // it may have run out
		s.release(others...)
		s.notApplicable("its leases cannot be extended")
	}
	var last time.Time
	for range extensions {
		again := func(ctx context.Context) error { return extender.Extend(ctx, ttl) }
		if err := within(s.patience, again); err != nil { // too late, if the machine stood still
			return cmp.Or(fmt.Sprintf("extend: %v", err), s.releaseAll(others))
		}
		last = time.Now()
	}
	s.die(i)
	for s.held(other, "extended") {
		if lasted := time.Since(last); lasted > extensions*ttl*3/4 {
			return fmt.Sprintf("a lease of %v that was extended by that %d times lasted for %v after the last time: "+
				"extensions add up", ttl, extensions, lasted.Round(time.Millisecond))
		}
		time.Sleep(ttl / 20)
	}
	s.release(others...)
	return ""
}

// validity checks that a lease claims to be valid no longer than its TTL from the moment
// before it was asked for, and that no other client gets the lock before that end.
func validity(s *stage) {
	alive := s.open(longTTL)
	for range 4 {
		lease := s.acquire(alive, "key")
		s.believable(alive, lease, longTTL)
		s.release(lease)
	}
	s.calmly(2*shortTTL, func(ttl time.Duration) string { return s.validAfterItsWait(alive, ttl) })
	const enough = 2 // one alone may look right by chance
	for attempt, right, ttl := 1, 0, shortTTL; ; attempt++ {
		late := s.outlived(alive, ttl)
		if late < ttl/5 {
			if right++; right == enough {
				return
			}
			continue
		}
		if ttl *= 2; attempt == attempts {
			s.notJudged("a waiter gets the lock of one who died as much as %v after its TTL of %v: it may have been "+
				"free before", late, ttl/2)
		}
		s.Logf("a waiter got the lock %v after a TTL of %v: once more", late, ttl/2)
	}
}

// validAfterItsWait has a client wait for longer than its TTL. It returns what is wrong with the lease that it gets.
func (s *stage) validAfterItsWait(holder *instance, ttl time.Duration) (fault string) {
	i, held := s.open(ttl), s.fill(holder, "key")
	w := s.waiterFor(i, "key", i.Acquire)
	w.parked()
	time.Sleep(ttl * 3 / 2)
	s.release(held...)
	w.finish()
	timed, ok := strategies.As[strategies.Timed](w.lease)
	if !ok {
		s.notApplicable("its leases do not say until when they are valid")
	}
	if ended := w.over.Sub(timed.ValidUntil()); ended > 0 {
		fault = fmt.Sprintf("a lease of %v that was waited for had ended %v before it was granted, by its own word",
			ttl, ended)
	}
	_ = s.again(w.lease) // it may have run out
	return fault
}

// outlived returns how long after the end of a dead holder's validity another client got the
// lock.
func (s *stage) outlived(alive *instance, ttl time.Duration) time.Duration {
	dead := s.open(ttl)
	timed, ok := strategies.As[strategies.Timed](s.fill(dead, "key")[0])
	if !ok {
		s.notApplicable("its leases do not say until when they are valid")
	}
	s.die(dead)
	next := s.waiterFor(alive, "key", alive.Acquire)
	if !next.within(s.patience) {
		s.brokenNow(recovering, "a holder with a TTL of %v has died, and %v later its lock is not free", ttl,
			s.patience)
	}
	next.finish()
	late := next.over.Sub(timed.ValidUntil())
	if late < 0 {
		s.fatalf("another was granted the lock %v before a lease on it ceased to be valid", -late)
	}
	s.release(next.lease)
	s.release(s.fill(alive, "key")...) // the other permits come back when a client looks
	return late
}

// believable compares the end of a lease's validity with the time when the last command was
// sent, where both can be seen: the TTL began then, or before.
func (s *stage) believable(i *instance, lease strategies.Lease, ttl time.Duration) {
	timed, ok := strategies.As[strategies.Timed](lease)
	if !ok {
		return
	}
	until, sent := timed.ValidUntil(), i.wire.LastWrite()
	if over := until.Sub(sent.Add(ttl)); over > 0 && !sent.IsZero() {
		s.brokenNow(valid,
			"a lease of %v is said to be valid for longer than that from when its last command was sent, by %v", ttl,
			over)
	}
}

// callFor is a call with a TTL of its own.
type callFor struct {
	name string
	do   func(locker strategies.Termed, ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error)
}

// callTTL checks that a call's TTL holds for its lease in place of the Locker's, whether it is
// longer or shorter, and that no watchdog renews the lease.
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
		if !s.held(other, c.name) { // no machine stands still for so long
			s.fatalf("a lease of %s for %v ran out with its Locker's TTL", c.name, longTTL)
		}
	}
	s.release(lasting...)
}

// waiterOf makes that call in the background.
func (s *stage) waiterOf(i *instance, key string, c callFor, ttl time.Duration) *waiter {
	termed, ok := strategies.As[strategies.Termed](i.lock)
	if !ok {
		s.notApplicable("its calls have no TTL of their own")
	}
	return s.waiterFor(i, key, func(ctx context.Context, key string) (strategies.Lease, error) {
		return c.do(termed, ctx, s.named(key), ttl)
	})
}

// fillFor takes all permits of a key with that call. A try that a busy machine made fail is repeated.
func (s *stage) fillFor(i *instance, key string, c callFor, ttl time.Duration) (leases []strategies.Lease) {
	for range s.info.Capacity {
		err := errors.New("no answer")
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
			s.brokenNow(granting, "%s for %v of a free lock: %v", c.name, ttl, err)
		}
	}
	return leases
}

// longer takes leases with a longer TTL than the Locker's.
func (s *stage) longer(i *instance, c callFor) []strategies.Lease {
	asked := time.Now()
	leases := s.fillFor(i, c.name, c, longTTL)
	last := leases[len(leases)-1]
	s.believable(i, last, longTTL)
	if timed, ok := strategies.As[strategies.Timed](last); ok {
		if valid := timed.ValidUntil().Sub(asked); valid < longTTL*9/10 { // less drift, of a quorum
			s.fatalf("%s for %v gave a lease that is valid for %v", c.name, longTTL, valid)
		}
	}
	return leases
}

// refusesTTLs asks for leases that would be over at once.
func (s *stage) refusesTTLs(i *instance, c callFor) {
	for _, ttl := range []time.Duration{-longTTL, 0, time.Millisecond - 1} {
		before := i.probe.Counts().Attempts
		w := s.waiterOf(i, "refused", c, ttl)
		switch {
		case !w.within(s.patience):
			s.fatalf("%s for %v goes on, want an error", c.name, ttl)
		case w.err == nil || w.lease != nil:
			s.fatalf("%s for %v was granted, want an error", c.name, ttl)
		case i.probe.Counts().Attempts > before:
			s.errorf("%s for %v asked for the lock before it was refused", c.name, ttl)
		}
	}
}

// runsOut takes leases that nobody releases, and expects another to get the lock after them.
func (s *stage) runsOut(i, other *instance, key string, c callFor, ttl time.Duration) {
	lease := s.fillFor(i, key, c, ttl)[0]
	next := s.waiterFor(other, key, other.Acquire)
	if !next.within(s.patience) {
		s.fatalf("a lease of %s for %v keeps the lock from others for %v", c.name, ttl, s.patience)
	}
	next.finish()
	if timed, ok := strategies.As[strategies.Timed](lease); ok && next.over.Before(timed.ValidUntil()) {
		s.brokenNow(valid, "another was granted the lock %v before a lease on it ceased to be valid",
			timed.ValidUntil().Sub(next.over))
	}
	s.release(next.lease)
	s.release(s.fill(other, key)...) // the other permits come back when a client looks
}

// watchdog checks that a living holder keeps every lease, a dead one none, and that nobody
// touches another's.
func watchdog(s *stage) {
	const ttl = 3 * shortTTL
	other := s.open(longTTL)
	var i *instance
	s.calmly(ttl, func(ttl time.Duration) string {
		if i != nil { // its watchdog may still run
			s.die(i)
		}
		i = s.open(ttl)
		return s.keeps(i, other, ttl)
	})
	s.die(i)
	if !s.eventually(func() bool { return !s.held(other, "key") }) {
		s.fatalf("a dead holder's lease is kept: its watchdog goes on")
	}
	if s.info.OnRedis() { // another store cannot be made to forget the lock
		s.sparesOthers(other)
	}
}

// keeps holds leases for longer than their TTL: first two at a time, since a watchdog may
// know of one only, then another on the same key. It returns what is wrong; if nothing is,
// the last lease is still held.
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
			fault = "a lease that is held was told to be lost"
		default:
		}
	}
	if fault = cmp.Or(fault, s.releaseAll(leases)); fault != "" {
		return fault
	}

	const released = "a lock that was released is held again: its watchdog goes on"
	next := s.waiterFor(i, "key", i.Acquire)
	if !next.within(s.patience) {
		s.fatalf(released)
	}
	next.finish()
	leases = append(s.take(i, "key", s.info.Capacity-1), next.lease)
	fault = lasts(ttl, func() string {
		switch {
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

// lasts looks again and again for longer than the TTL, and returns what is wrong.
func lasts(ttl time.Duration, look func() string) (fault string) {
	for end := time.Now().Add(ttl * 3 / 2); fault == "" && time.Now().Before(end); time.Sleep(ttl / 20) {
		fault = look()
	}
	return fault
}

// sparesOthers has an instance lose a lock without notice to another with a long TTL, and
// then die. A watchdog that does not ask whose lock it renews gives that lease its own, short
// TTL, with which it runs out. A standstill of the machine changes nothing in that.
func (s *stage) sparesOthers(other *instance) {
	loser, next := s.open(shortTTL), s.open(longTTL)
	s.fill(loser, "lost")
	s.forget("lost")
	leases := s.fill(next, "lost")
	taken := time.Now()
	time.Sleep(2 * shortTTL)
	if !s.ownConnections(loser) {
		s.eventually(func() bool { return loser.wire.LastWrite().After(taken) }) // the watchdog has looked
	}
	s.die(loser)
	time.Sleep(2 * shortTTL)
	if !s.held(other, "lost") {
		s.fatalf("a lease of another for %v ran out soon after one died who held the lock before: "+
			"its watchdog does not ask whose it is", longTTL)
	}
	_ = s.releaseAll(leases)
}
