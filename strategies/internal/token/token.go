// Package token is the lock that is one key with its owner's token: Redis compares the token
// before a release or an extension.
package token

import (
	"context"
	_ "embed" // the scripts
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

var (
	//go:embed release.lua
	releaseSource string
	//go:embed extend.lua
	extendSource string

	// ReleaseScript deletes the key if it holds the token, its only argument, and returns 1; else 0.
	ReleaseScript = redis.NewScript(releaseSource)
	// ExtendScript sets the key to expire after its second argument in milliseconds, if it
	// holds the token, its first, and returns 1; else 0. Extend runs it.
	ExtendScript = redis.NewScript(extendSource)
)

// Lease is a key that holds the owner's token.
type Lease struct {
	Client      goredis.Client
	Name, Token string
	Until       validity.Until
}

// Load loads the release script.
func Load(ctx context.Context, client goredis.Client) error {
	return goredis.Load(ctx, client, ReleaseScript)
}

// ValidUntil returns the moment before the lock was asked for or extended, plus the TTL.
func (l *Lease) ValidUntil() time.Time { return l.Until.Get() }

// Try makes one attempt to get the lock, for ttl, by a command that says whether it has set
// the key. After an error the lock is not held; after validity.ErrLate the caller may try
// again.
func (l *Lease) Try(ctx context.Context, ttl time.Duration, set func() (bool, error)) (bool, error) {
	l.Until.Set(time.Now().Add(ttl))
	got, err := set()
	if got && !time.Now().Before(l.ValidUntil()) {
		err = validity.ErrLate
	}
	if err == nil {
		return got, nil
	}
	if indeterminate.MayHaveRun(err) {
		l.GiveBack(ctx)
	}
	return false, fmt.Errorf("set %q: %w", l.Name, indeterminate.Because(ctx, err))
}

// Free deletes the key if it still holds the token, and says whether it did.
func (l *Lease) Free(ctx context.Context) (bool, error) {
	n, err := ReleaseScript.Run(ctx, l.Client, []string{l.Name}, l.Token).Int()
	return n == 1, err
}

// Release is Free with ErrNotHeld if the key does not hold the token.
func (l *Lease) Release(ctx context.Context) error {
	freed, err := l.Free(ctx)
	if err != nil {
		return fmt.Errorf("release %q: %w", l.Name, indeterminate.Because(ctx, err))
	}
	if !freed {
		return strategies.ErrNotHeld
	}
	return nil
}

// GiveBack frees the lock after a command that ended indeterminate. If that fails, the TTL
// frees it.
func (l *Lease) GiveBack(ctx context.Context) {
	settle, done := indeterminate.Settle(ctx)
	defer done()
	_, _ = l.Free(settle)
}

// Extend renews the key's TTL if it still holds the token. After an error the lease ends by ttl
// at the latest, and if Redis may still do it, no later call prolongs it by more.
func (l *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	ttl = ttl.Truncate(time.Millisecond)
	answer := l.Until.Extending(time.Now(), ttl)
	renewed, err := Extend(ctx, l.Client, l.Name, l.Token, max(ttl.Milliseconds(), 1))
	answer(renewed, indeterminate.MayHaveRun(err))
	if err != nil {
		return fmt.Errorf("extend %q: %w", l.Name, indeterminate.Because(ctx, err))
	}
	if !renewed {
		return strategies.ErrNotHeld
	}
	return nil
}

// Extend sets the key to expire after ms milliseconds if it holds the token, by a script that
// the client does not send twice, and says whether it did.
func Extend(ctx context.Context, client goredis.Client, name, token string, ms int64) (bool, error) {
	n, err := ExtendScript.Run(ctx, indeterminate.ScriptsOnce{Scripter: client}, []string{name}, token, ms).Int()
	return n == 1, err
}
