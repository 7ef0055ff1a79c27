package redisson

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/bounded"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/pending"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

// lease is one hold of a lock by an owner. Its mutex allows the watchdog and the holder to use the lease concurrently.
type lease struct {
	locker *Locker
	key    string        // the lock's key in Redis
	owner  string        // the owner's name in Redis
	holder *holder       // set by AcquireAs; nil for an owner that holds the lock once
	fence  int64         // the token; only in fenced
	wait   time.Duration // the longest time that the caller waits; 0 for a try-lock
	term   time.Duration // the requested TTL, in whole milliseconds
	brief  bool          // the lease may end earlier than parked waiters expect
	fixed  bool          // the watchdog does not renew the lease
	asked  bool          // Redis may have received a command of the owner
	// open is closed at the end of an acquire that got no reply, which Redis may still execute; nil if there is none.
	open <-chan struct{}

	until validity.Until

	mu      sync.Mutex
	ttl     time.Duration    // the TTL of the watchdog's renewals
	longest time.Duration    // the longest TTL of an Extend
	back    *pending.Release // the release of all holds; nil before the first Release
	gone    bool             // the lease is known to be lost
	lost    chan struct{}    // the channel of Lost; nil until Lost is called
}

// topic returns the topic for a channel of the lock, which is sharded or not as the Herald decides.
func (held *lease) topic(channel string) redisson.Topic {
	return held.locker.herald.Topic(held.key, channel)
}

// parkFor returns how long to wait for a lock with a PTTL of ms: at most the Locker's TTL, because the next holder's
// lease may end sooner than the present lease, and no message announces an expired lease.
func (held *lease) parkFor(ms int64) time.Duration {
	most := held.locker.config.TTL
	if ms < 0 { // the key has no TTL, so another program has set it
		return most
	}
	// A PTTL of 0 means less than a millisecond. The waiter parks for one millisecond, so that it does not poll without a
	// pause.
	return min(time.Duration(max(ms, 1))*time.Millisecond, most)
}

// ValidUntil returns the end of the lease: the time before the last successful acquire or renewal was sent, plus its
// TTL. An extension that may have shortened the lease makes this time earlier.
func (held *lease) ValidUntil() time.Time { return held.until.Get() }

// Lost returns a channel that is closed when the watchdog, Extend or Release finds that the lease has expired or that
// another owner has the lock.
func (held *lease) Lost() <-chan struct{} {
	held.mu.Lock()
	defer held.mu.Unlock()
	if held.lost == nil {
		held.lost = make(chan struct{})
		if held.gone {
			close(held.lost)
		}
	}
	return held.lost
}

func (held *lease) lose() {
	if held.holder != nil {
		held.locker.holders.remove(held)
	}
	held.mu.Lock()
	defer held.mu.Unlock()
	if !held.gone && held.lost != nil {
		close(held.lost)
	}
	held.gone = true
}

// Release releases this hold; the release of an owner's last hold frees the lock. If Redis refuses the release, or ctx
// ends before the reply, the release is repeated in the background. If the owner has other holds, the release is not
// repeated, because a repetition could release two holds. The hold then counts as released.
func (held *lease) Release(ctx context.Context) error {
	held.locker.watchdog.forget(held)
	err := held.give(ctx)
	switch {
	case errors.Is(err, strategies.ErrNotHeld):
		held.lose()
		return err
	case err != nil:
		return fmt.Errorf("release %q: %w", held.key, indeterminate.Because(ctx, err))
	}
	return nil
}

func (held *lease) give(ctx context.Context) error {
	l := held.locker
	all, err := held.all()
	switch {
	case err != nil:
		return err
	case all != nil:
		err := l.releases.Release(ctx, all)
		if all.Asked != nil { // Redis may still execute an acquire of the owner that got no reply
			l.releases.Add(all)
		}
		return err
	}
	return l.releases.Calls.Do(ctx, func() error {
		return l.protocol.release(ctx, indeterminate.ScriptsOnce{Scripter: l.client}, held, true)
	})
}

// all returns the release of all holds of the owner. It returns nil if the owner has other leases, because then only
// one hold may be released. It returns ErrNotHeld if the lease was already released or lost.
func (held *lease) all() (*pending.Release, error) {
	l := held.locker
	held.mu.Lock()
	defer held.mu.Unlock()
	if held.back != nil {
		return held.back, nil
	}
	open := held.open
	if held.holder != nil {
		stay, known := l.holders.remove(held)
		switch {
		case !known: // already released or lost
			return nil, strategies.ErrNotHeld
		case stay > 0:
			return nil, nil
		}
		open = l.holders.openOf(held.holder)
	}
	held.back = l.release(held, max(held.term, held.longest), open)
	return held.back, nil
}

// Extend makes the lease last for ttl from now on. After an error the lease lasts for at most ttl from now on. If the
// watchdog renews the lease, Extend uses the Locker's TTL in place of a shorter ttl, and later renewals use the TTL
// that Extend has used.
func (held *lease) Extend(ctx context.Context, ttl time.Duration) error {
	if held.locker.watchdog != nil && !held.fixed {
		ttl = max(ttl, held.locker.config.TTL)
	}
	ttl = ttl.Truncate(time.Millisecond)
	held.mu.Lock()
	held.longest = max(held.longest, ttl)
	held.mu.Unlock()
	answer := held.extending(ttl)
	renewed, err := bounded.Get(ctx, &held.locker.releases.Calls, func() (bool, error) {
		return redisson.Flag(renewScript.Run(ctx, indeterminate.ScriptsOnce{Scripter: held.locker.client},
			[]string{held.key}, max(ttl.Milliseconds(), 1), held.owner, held.holder != nil))
	})
	answer(renewed, indeterminate.MayHaveRun(err))
	if err != nil {
		return fmt.Errorf("extend %q: %w", held.key, indeterminate.Because(ctx, err))
	}
	if !renewed {
		held.lose()
		return strategies.ErrNotHeld
	}
	held.mu.Lock()
	held.ttl = ttl
	held.mu.Unlock()
	return nil
}

// extending must be called before a renewal is sent. The caller then passes the renewal's outcome to the returned
// function, as for validity.Until.Extending. For an owner that may hold the lock more than once, a renewal never
// shortens a lease.
func (held *lease) extending(ttl time.Duration) (answer func(done, open bool)) {
	sent := time.Now()
	if held.holder == nil {
		answer = held.until.Extending(sent, ttl)
		held.locker.watchdog.look(held) // the lease may end earlier than before
		return answer
	}
	return func(done, _ bool) {
		if done {
			held.until.Raise(sent.Add(ttl))
		}
	}
}

// renewal returns the TTL for which the watchdog renews the lease.
func (held *lease) renewal() time.Duration {
	held.mu.Lock()
	defer held.mu.Unlock()
	return held.ttl
}
