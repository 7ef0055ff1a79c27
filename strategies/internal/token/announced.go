package token

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

// Announced is a lease of a lock with three keys: the owner's token, the waiters, and what
// tells them of a release.
type Announced struct {
	Client redis.UniversalClient
	Keys   []string // see AnnouncedKeys
	Token  string
	Until  validity.Until
	// Script frees the lock if it still holds the token, and tells the waiters. It takes the
	// token and Argument, and returns 1, or 0 if the lock did not hold the token.
	Script   *redis.Script
	Argument any
}

// AnnouncedKeys returns the lock, its waiters and what tells them, all in one hash slot.
func AnnouncedKeys(name, tells string) []string {
	tagged := name
	if !strings.Contains(name, "{") {
		tagged = "{" + name + "}"
	}
	return []string{name, tagged + ":waiters", tagged + ":" + tells}
}

// ValidUntil returns the moment before the lock was asked for or extended, plus the TTL.
func (l *Announced) ValidUntil() time.Time { return l.Until.Get() }

// Release frees the lock if it is still the caller's, and tells the waiters.
func (l *Announced) Release(ctx context.Context) error {
	freed, err := l.Script.Run(ctx, l.Client, l.Keys, l.Token, l.Argument).Int()
	if err != nil {
		return fmt.Errorf("release %q: %w", l.Keys[0], indeterminate.Because(ctx, err))
	}
	if freed == 0 {
		return strategies.ErrNotHeld
	}
	return nil
}

// Extend renews the TTL if the lock is still the caller's.
func (l *Announced) Extend(ctx context.Context, ttl time.Duration) error {
	return Scripts.extend(ctx, l.Client, l.Keys[0], l.Token, ttl, &l.Until)
}
