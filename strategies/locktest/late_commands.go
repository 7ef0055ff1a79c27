package locktest

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// lateCommands has a network keep back what a holder or a waiter sends until its lease has
// run out and another has the lock, and then deliver it: each command of a release, of an
// extension and of an acquire.
func lateCommands(s *stage) {
	s.expiring = true
	l := &lateness{stage: s, next: s.open(longTTL), third: s.open(longTTL)}
	held := func(do func(strategies.Lease) func(context.Context) error) func() func(context.Context) error {
		return func() func(context.Context) error { return do(s.fill(l.stale, "key")[0]) }
	}
	for _, c := range []struct {
		what string
		of   func() func(context.Context) error
	}{
		{"release", held(func(lease strategies.Lease) func(context.Context) error { return lease.Release })},
		{"extension", held(func(lease strategies.Lease) func(context.Context) error {
			extender, ok := strategies.As[strategies.Extender](lease)
			if !ok {
				return lease.Release
			}
			l.extended = lease
			return func(ctx context.Context) error { return extender.Extend(ctx, staleTTL) }
		})},
		{"acquire", func() func(context.Context) error {
			return func(ctx context.Context) error {
				lease, err := l.stale.Acquire(ctx, "key")
				if err == nil {
					_ = lease.Release(context.WithoutCancel(ctx))
				}
				return err
			}
		}},
	} {
		for step := 0; step < steps && l.arrives(c.what, c.of, step); step++ {
		}
	}
}

// lateness is who takes part.
type lateness struct {
	*stage
	stale, next, third *instance
	extended           strategies.Lease // to be released in the end, as every holder does
}

// arrives keeps back all that is sent but the first so many commands, until another has the
// lock. It says whether there was such a command.
func (l *lateness) arrives(what string, of func() func(context.Context) error, step int) bool {
	if l.stale == nil {
		l.stale = l.open(staleTTL)
		_ = l.again(l.acquire(l.stale, "key")) // its connections are open
	}
	do := of()
	kept := l.stale.wire.keepBack(step)
	w := l.background(l.stale, "key", do)
	caught := kept.catches(w)
	w.cancel()
	kept.snap()
	w.returned("a " + what + " whose connection has broken")
	if l.info.Claims.Watchdog { // else it keeps what it extends
		l.die(l.stale)
		l.stale = nil
	}
	leases := l.fill(l.next, "key") // once the stale one has run out
	if err := kept.arrive(l.patience); err != nil {
		l.Logf("what came late was not answered: %v", err)
	}
	time.Sleep(staleTTL * 3 / 2) // an extension by that would be over
	seen := fmt.Sprintf("command number %d of a stale %s came late", step+1, what)
	if !l.held(l.third, "key") {
		l.fatalf("%s, and freed the next holder's lock", seen)
	}
	if err := l.again(leases[0]); err != nil {
		l.fatalf("%s, and the release of the next holder returned %q", seen, err)
	}
	l.release(leases[1:]...)
	if l.extended != nil {
		_ = l.again(l.extended) // it was lost
		l.extended = nil
	}
	if !l.eventually(func() bool { return l.free(l.third, "key") }) {
		l.fatalf("%s, and the lock is not free", seen)
	}
	return caught
}
