package locktest

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/network"
	"github.com/lockbench/lockbench/strategies"
)

// lateCommands keeps commands of a holder or a waiter in the network until its lease has run
// out and another client has the lock, and then delivers them. It does so for each command of
// a release, an extension and an acquire.
func lateCommands(s *stage) {
	s.expiring = true
	l := &lateness{stage: s, next: s.open(longTTL), third: s.open(longTTL)}
	for _, c := range []struct {
		what  string
		begin func() call
	}{
		{"release", l.stalesRelease},
		{"extension", l.stalesExtension},
		{"acquire", l.stalesAcquire},
	} {
		for step := 0; step < steps && l.arrives(c.what, c.begin, step); step++ {
		}
	}
}

// lateness is the instances that take part.
type lateness struct {
	*stage
	stale, next, third *instance
}

// call is what the stale instance does, and the lease that it releases in the end; nil means
// none.
type call struct {
	do    func(context.Context) error
	lease strategies.Lease
}

func (l *lateness) stalesRelease() call {
	return call{do: l.fill(l.stale, "key")[0].Release}
}

func (l *lateness) stalesExtension() call {
	lease := l.fill(l.stale, "key")[0]
	extender, ok := strategies.As[strategies.Extender](lease)
	if !ok {
		return call{do: lease.Release}
	}
	return call{func(ctx context.Context) error { return extender.Extend(ctx, staleTTL) }, lease}
}

func (l *lateness) stalesAcquire() call {
	return call{do: func(ctx context.Context) error {
		lease, err := l.stale.Acquire(ctx, "key")
		if err == nil {
			_ = lease.Release(context.WithoutCancel(ctx))
		}
		return err
	}}
}

// arrives lets step commands through and keeps back the others until another client has the
// lock. It says whether there was such a command.
func (l *lateness) arrives(what string, begin func() call, step int) bool {
	if l.stale == nil {
		l.stale = l.open(staleTTL)
		_ = l.again(l.acquire(l.stale, "key")) // this opens its connections
	}
	one := begin()
	kept := l.stale.wire.Hold(network.Late, step)
	w := l.background(l.stale, "key", one.do)
	caught := w.meets(kept)
	w.cancel()
	late := kept.Snap()
	w.returned("a " + what + " whose connection has broken")
	if l.info.Claims.Watchdog { // else its watchdog keeps what it extends
		l.die(l.stale)
		l.stale = nil
	}
	leases := l.fill(l.next, "key") // granted once the stale lease has run out
	if err := late.Deliver(); err != nil {
		l.Logf("what came late was not answered: %v", err)
	}
	time.Sleep(staleTTL * 3 / 2) // longer than an extension by staleTTL lasts
	seen := fmt.Sprintf("command number %d of a stale %s came late", step+1, what)
	if !l.held(l.third, "key") {
		l.fatalf("%s, and freed the next holder's lock", seen)
	}
	if err := l.again(leases[0]); err != nil {
		l.fatalf("%s, and the release of the next holder returned %q", seen, err)
	}
	l.release(leases[1:]...)
	if one.lease != nil {
		_ = l.again(one.lease) // it was lost
	}
	if !l.eventually(func() bool { return l.free(l.third, "key") }) {
		l.fatalf("%s, and the lock is not free", seen)
	}
	return caught
}
