package locktest_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/pending"
)

// redisLease is a lease of a redisLock. Its watchdog may renew it, and a failed release is repeated in the background.
type redisLease struct {
	lock        *redisLock
	name, token string
	ttl         time.Duration
	began       time.Time // when its wait began
	unwatched   bool      // the watchdog does not renew it
	again       bool
	fence       int64
	planted     bool // the lease was never granted
	released    bool
	stop        context.CancelFunc // of the watchdog
	lost        chan struct{}      // closed when the watchdog finds the lease lost
	repeated    *pending.Release   // the release that is repeated in the background

	mu    sync.Mutex
	until time.Time
	over  bool // a release has begun
}

func (lease *redisLease) FencingToken() int64 { return lease.fence }

func (lease *redisLease) ValidUntil() time.Time {
	lease.mu.Lock()
	defer lease.mu.Unlock()
	return lease.until
}

func (lease *redisLease) renewed(until time.Time) {
	lease.mu.Lock()
	defer lease.mu.Unlock()
	lease.until = until
}

func (lease *redisLease) Release(ctx context.Context) error {
	l := lease.lock
	if l.defects["asksOnce"] && lease.isOver() {
		return nil
	}
	lease.ends()
	if lease.stop != nil && !l.defects["renewsForEver"] && !l.defects["stopsAfter"] {
		lease.stop()
	}
	if lease.planted || l.defects["ownRecord"] && lease.released {
		if lease.released {
			return strategies.ErrNotHeld
		}
		lease.released = true
		return nil
	}
	lease.released = true
	given, err := answered(ctx, l, func() (bool, error) { return lease.give(ctx) })
	given, err = lease.insists(ctx, given, err)
	if err != nil {
		lease.repeat()
	}
	if lease.stop != nil && l.defects["stopsAfter"] && err == nil {
		lease.stop()
	}
	if l.defects["blind"] && !given && err == nil {
		n, _ := l.client.Del(ctx, lease.name).Result()
		l.client.Publish(ctx, lease.name+":freed", "")
		given = n == 1
	}
	if given && l.defects["firstRelease"] {
		for given && err == nil {
			given, err = lease.give(ctx)
		}
		given = true
	}
	switch {
	case err != nil:
		return fmt.Errorf("release %q: %w", lease.name, indeterminate.Because(ctx, err))
	case !given && !l.defects["lateIsFine"]:
		return strategies.ErrNotHeld
	}
	return nil
}

// back returns a release that can be repeated in the background. It may be used only if the owner holds the lock once:
// each repetition decrements the hold count.
func (lease *redisLease) back() *pending.Release {
	return &pending.Release{TTL: lease.ttl, Send: func(ctx context.Context) error {
		given, err := lease.give(ctx)
		if err == nil && !given {
			err = strategies.ErrNotHeld
		}
		return err
	}}
}

// repeat starts to repeat the release in the background, unless a fault prevents it.
func (lease *redisLease) repeat() {
	l := lease.lock
	for _, fault := range []string{"forgetsRelease", "asksOnce", "deletesAgain", "stopsAfter"} {
		if l.defects[fault] {
			return
		}
	}
	if lease.again { // the owner may hold it several times, and a repeated release would count twice
		return
	}
	if lease.repeated == nil {
		lease.repeated = lease.back()
	}
	l.releases.Add(lease.repeated)
}

func (lease *redisLease) give(ctx context.Context) (bool, error) {
	if lease.lock.defects["looksFirst"] {
		return lease.checkThenDelete(ctx)
	}
	run := lease.lock.release.Run
	if lease.lock.defects["evalsha"] {
		run = lease.lock.release.EvalSha
	}
	given, err := run(ctx, lease.lock.client, []string{lease.name}, lease.token, lease.name+":freed").Int()
	return given == 1, err
}

func (lease *redisLease) Extend(ctx context.Context, ttl time.Duration) error {
	until := time.Now().Add(ttl)
	if lease.lock.defects["persistsFirst"] {
		if err := lease.lock.client.Persist(ctx, lease.name).Err(); err != nil {
			return err
		}
	}
	renewed, err := answered(ctx, lease.lock, func() (int, error) {
		return lease.lock.renew.Run(ctx, lease.lock.client, []string{lease.name}, lease.token, ttl.Milliseconds()).Int()
	})
	if err != nil {
		return fmt.Errorf("extend %q: %w", lease.name, indeterminate.Because(ctx, err))
	}
	if renewed == 0 {
		return strategies.ErrNotHeld
	}
	lease.renewed(until)
	return nil
}

// watch starts a watchdog, which renews the lease until Release or Close. The faults noRenewal, renewsBlindly and
// renewsForEver change how it renews the lease. With outlivesClose it does not end with Close.
func (lease *redisLease) watch() {
	l := lease.lock
	lease.lost = make(chan struct{})
	ctx, stop := context.WithCancel(l.closing)
	if l.defects["outlivesClose"] {
		ctx, stop = context.WithCancel(context.Background())
	}
	lease.stop = stop
	l.renewing.Go(func() {
		ticker := time.NewTicker(l.config.TTL / 10) // short enough that a delay does not hide the fault
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			switch {
			case l.defects["noRenewal"]:
			case l.defects["renewsBlindly"]:
				l.client.PExpire(ctx, lease.name, l.config.TTL)
			case l.defects["renewsForEver"]: // writes the owner instead of checking it
				l.client.HSet(ctx, lease.name, "owner", lease.token)
				l.client.PExpire(ctx, lease.name, l.config.TTL)
			default:
				if lease.find(lease.extendInTime(ctx)) {
					return
				}
			}
		}
	})
}

// extendInTime extends the lease for the watchdog. It returns ErrNotHeld if the lease ends before it is extended. With
// the fault reportsLate, and for a lease whose end is unknown, there is no such limit.
func (lease *redisLease) extendInTime(ctx context.Context) error {
	l, until := lease.lock, lease.ValidUntil()
	if l.defects["reportsLate"] || until.IsZero() {
		return lease.Extend(ctx, l.config.TTL)
	}
	limited, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	err := lease.Extend(limited, l.config.TTL)
	if err != nil && !time.Now().Before(lease.ValidUntil()) && ctx.Err() == nil {
		return strategies.ErrNotHeld
	}
	return err
}
