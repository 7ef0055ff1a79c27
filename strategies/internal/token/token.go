// Package token implements locks that store their owner's token under one key. A release or an extension changes the
// key only if it still has the caller's token.
package token

import (
	"context"
	_ "embed" // the scripts
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/bounded"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/pending"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

var (
	//go:embed release.lua
	releaseSource string
	//go:embed extend.lua
	extendSource string

	// ReleaseScript deletes the key and returns 1 if the key holds the token in the only argument. Otherwise it returns 0.
	ReleaseScript = redis.NewScript(releaseSource)
	// ExtendScript sets the TTL of the key to the second argument, in ms, and returns 1 if the key holds the token in the
	// first argument. Otherwise it returns 0. Extend runs it.
	ExtendScript = redis.NewScript(extendSource)
)

// Lease is a lock that stores the owner's token under the key Name.
type Lease struct {
	Client      redis.UniversalClient
	Releases    *pending.Releases // of the Locker, for all calls except Free
	Name, Token string
	Until       validity.Until
	Native      *Native // releases the lock; nil means that ReleaseScript does

	once    sync.Once // fills in release
	release pending.Release
	longest atomic.Int64 // the longest TTL requested so far, in ns; 0 means none
}

// Load loads ReleaseScript into the server's script cache, so that the first release needs only one round trip.
func Load(ctx context.Context, client redis.UniversalClient) error {
	return goredis.Load(ctx, client, ReleaseScript)
}

// ValidUntil returns the end of the lease: the time before the acquire or the last successful extension was sent, plus
// its TTL. A failed extension may have moved this end to an earlier time, as Extend describes.
func (l *Lease) ValidUntil() time.Time { return l.Until.Get() }

// Try makes one attempt to get the lock for ttl, by calling set. set reports whether it has set the key, and may still
// be running when Try returns. After an error the caller does not hold the lock. If set may nevertheless have set the
// key, Try releases the lock, if necessary in the background, and no other attempt may use the token.
func (l *Lease) Try(ctx context.Context, ttl time.Duration, set func() (bool, error)) (bool, error) {
	l.Until.Set(time.Now().Add(ttl))
	l.mayLast(ttl)
	got, err := bounded.Get(ctx, &l.Releases.Calls, set)
	if got && err == nil && !time.Now().Before(l.ValidUntil()) {
		err = validity.ErrLate
	}
	if err == nil {
		return got, nil
	}
	if asked := pending.Asked(err); got || asked != nil {
		l.GiveBack(ctx, asked)
	}
	return false, fmt.Errorf("set %q: %w", l.Name, indeterminate.Because(ctx, err))
}

// mayLast records that Redis may keep the key for ttl, so that a failed release is repeated for that long.
func (l *Lease) mayLast(ttl time.Duration) {
	for {
		longest := l.longest.Load()
		if int64(ttl) <= longest || l.longest.CompareAndSwap(longest, int64(ttl)) {
			return
		}
	}
}

// Free deletes the key if it still has the token, and reports whether it did. It makes one attempt. If the client
// ignores contexts, Free does not end with ctx.
func (l *Lease) Free(ctx context.Context) (bool, error) {
	if l.Native != nil {
		deleted, err := l.Native.Delete(&l.Name, &l.Token, func(words ...any) (any, error) {
			return l.Client.Do(ctx, words...).Result()
		})
		if errors.Is(err, ErrNoNative) { // the next call may succeed, after a change of rights or a failover
			l.Native.forget()
		}
		return deleted, err
	}
	n, err := ReleaseScript.Run(ctx, l.Client, []string{l.Name}, l.Token).Int()
	return n == 1, err
}

// send makes one attempt to delete the key. It returns ErrNotHeld if the key does not have the token.
func (l *Lease) send(ctx context.Context) error {
	freed, err := l.Free(ctx)
	if err == nil && !freed {
		return strategies.ErrNotHeld
	}
	return err
}

// Release deletes the key, or returns ErrNotHeld if the key does not hold the token. After any other error the release
// is repeated in the background.
func (l *Lease) Release(ctx context.Context) error {
	l.once.Do(func() { l.release.Send, l.release.TTL = l.send, time.Duration(l.longest.Load()) })
	err := l.Releases.Release(ctx, &l.release)
	if err != nil && !errors.Is(err, strategies.ErrNotHeld) {
		return fmt.Errorf("release %q: %w", l.Name, indeterminate.Because(ctx, err))
	}
	return err
}

// GiveBack releases the lock after a failed attempt to get it, at once or in the background. asked is the value of
// pending.Release.Asked.
func (l *Lease) GiveBack(ctx context.Context, asked <-chan struct{}) {
	l.Releases.GiveBack(ctx, &pending.Release{
		Send: l.send, Asked: asked, TTL: time.Duration(l.longest.Load()),
	})
}

// Extend sets the key's TTL to ttl if the key still has the token; otherwise it returns ErrNotHeld. After any other
// error the lease ends at its previous end or ttl after the call, whichever is earlier. As long as Redis may still
// execute the failed extension, later calls prolong the lease by at most the ttl of that extension.
func (l *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	ttl = ttl.Truncate(time.Millisecond)
	answer := l.Until.Extending(time.Now(), ttl)
	l.mayLast(ttl)
	renewed, err := bounded.Get(ctx, &l.Releases.Calls, func() (bool, error) {
		return Extend(ctx, l.Client, l.Name, l.Token, max(ttl.Milliseconds(), 1))
	})
	answer(renewed, indeterminate.MayHaveRun(err))
	if err != nil {
		return fmt.Errorf("extend %q: %w", l.Name, indeterminate.Because(ctx, err))
	}
	if !renewed {
		return strategies.ErrNotHeld
	}
	return nil
}

// Extend sets the TTL of the key to ms milliseconds if the key has the token, and reports whether it did. The client
// sends the script only once, even if it is configured to retry.
func Extend(ctx context.Context, client redis.UniversalClient, name, token string, ms int64) (bool, error) {
	n, err := ExtendScript.Run(ctx, indeterminate.ScriptsOnce{Scripter: client}, []string{name}, token, ms).Int()
	return n == 1, err
}
