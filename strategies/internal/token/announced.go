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

// Announced is a lease of a lock that keeps, beside its key with the owner's token, who waits
// for it, and tells them of a release by a third key.
type Announced struct {
	Client redis.UniversalClient
	Keys   []string // see AnnouncedKeys
	Token  string
	Until  validity.Until
	// Script frees the lock if it is still the token's, and tells it. It takes the token and
	// Argument, and returns 1, or 0 when the lock was not the token's.
	Script   *redis.Script
	Argument any
}

// AnnouncedKeys are the lock, its waiters and what tells them, all of one hash slot.
func AnnouncedKeys(name, tells string) []string {
	tagged := name
	if !strings.Contains(name, "{") {
		tagged = "{" + name + "}"
	}
	return []string{name, tagged + ":waiters", tagged + ":" + tells}
}

// ValidUntil is the TTL after the moment before the lock was asked for.
func (l *Announced) ValidUntil() time.Time { return l.Until.Get() }

// Release frees the lock if it is still the caller's, and tells it.
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
