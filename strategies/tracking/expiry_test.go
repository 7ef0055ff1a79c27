package tracking

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Claim: of all wake-ups only this one comes of a lock that runs out, too. The
// waiter's own clock is put off, so that nothing else can wake it.
func TestExpiryIsTold(t *testing.T) {
	trial.Calm(t, func(times int) string { return expiryIsTold(t, time.Duration(times)*500*time.Millisecond) })
}

func expiryIsTold(t *testing.T, left time.Duration) (spoilt string) {
	server := redistest.Start(t)
	outside := server.Client(t)
	config := trial.Config(t, server)
	config.TTL = time.Hour
	locker, err := Open(config, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locker.Close() })

	// A holder that lives for ever, as far as the waiter has seen.
	if err := outside.Set(t.Context(), "trial:key", "somebody", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		lease, err := locker.Acquire(t.Context(), "key")
		if err == nil {
			err = lease.Release(context.Background())
		}
		done <- err
	}()
	looked := func() bool {
		locker.tracker.mu.Lock()
		defer locker.tracker.mu.Unlock()
		g := locker.tracker.groups["trial:key"]
		return g != nil && !g.asked && g.woken == nil
	}
	poll.Until(t, "the lock has been looked at", looked)
	// Now it dies. That it is to run out soon is a change by itself, which is told; the
	// bound that the next look has found is then put off, unless it is over by then.
	end := time.Now().Add(left)
	over := func() bool { return !time.Now().Before(end) }
	if err := outside.PExpire(t.Context(), "trial:key", left).Err(); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the change is told", func() bool { return over() || config.Probe.Counts().Futile == 1 })
	poll.Until(t, "the lock has been looked at again", func() bool { return over() || looked() })
	locker.tracker.mu.Lock()
	if g := locker.tracker.groups["trial:key"]; g != nil && !over() {
		g.bound = time.Now().Add(time.Hour)
	} else {
		spoilt = "the lock ran out before the waiter's clock was put off"
	}
	locker.tracker.mu.Unlock()

	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := config.Probe.Counts(); spoilt == "" && (got.Attempts != 3 || got.Useful != 1 || got.Futile != 1) {
		t.Errorf("counted %+v, want three attempts, the second woken by the change, the third by the end", got)
	}
	return spoilt
}
