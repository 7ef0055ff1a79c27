package audit

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// Tokens are positive and grow beyond 2038, when seconds leave 31 bits.
func TestTokensBeyond2038(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		server, clock := trial.StartSettable(t)
		locker := open(t, name, server.Addr, nil, time.Minute)
		var last int64
		year := 365 * 24 * time.Hour
		for _, ahead := range []time.Duration{0, 11 * year, 13 * year, 50 * year} {
			clock.Set(ahead)
			lease := acquire(t, locker)
			if token(lease) <= last {
				t.Errorf("in %d years token %d came after %d", ahead/year, token(lease), last)
			}
			last = token(lease)
			_ = release(t, lease)
		}
	})
}

// When Redis's clock has been set forward, a grant that comes late is not believed to be a
// lease that lasts.
func TestLateGrantAfterTheClockWasSet(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		server, clock := trial.StartSettable(t)
		const ttl = time.Second
		p := new(trial.Path)
		holder := open(t, name, server.Addr, nil, time.Hour)
		waiter := open(t, name, server.Addr, p.Dial, ttl)
		other := open(t, name, server.Addr, nil, time.Hour)
		b := &book{t: t}
		lease := acquire(t, holder)
		b.enter("the holder", lease)
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() {
			lease, err := waiter.Acquire(ctx, "key")
			if err == nil {
				b.enter("who was told late", lease)
				b.leave(lease)
				_ = release(t, lease)
			}
			result <- err
		}()
		time.Sleep(200 * time.Millisecond)
		clock.Set(30 * time.Second)
		time.Sleep(1500 * time.Millisecond) // it beats again
		p.Stall(true)
		b.leave(lease)
		if err := release(t, lease); err != nil {
			t.Error(err)
		}
		theirs := free(t, other) // once the waiter's lease has run out
		b.enter("the other", theirs)
		p.Stall(false)
		time.Sleep(300 * time.Millisecond)
		cancel()
		if err := <-result; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		b.leave(theirs)
		_ = release(t, theirs)
	})
}
