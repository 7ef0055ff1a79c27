package stream

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/doubt"
	"github.com/lockbench/lockbench/strategies/internal/token"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

// lease is a key that holds the owner's token.
type lease struct {
	locker *Locker
	keys   []string
	token  string
	until  validity.Until
}

// ValidUntil is the TTL after the moment before the lock was asked for.
func (held *lease) ValidUntil() time.Time { return held.until.Get() }

// Release deletes the key if it still holds the token, and tells it.
func (held *lease) Release(ctx context.Context) error {
	freed, err := releaseScript.Run(ctx, held.locker.client, held.keys, held.token, 0).Int()
	if err != nil {
		return fmt.Errorf("release %q: %w", held.keys[0], doubt.Because(ctx, err))
	}
	if freed == 0 {
		return strategies.ErrNotHeld
	}
	return nil
}

// Extend renews the key's TTL if it still holds the token.
func (held *lease) Extend(ctx context.Context, ttl time.Duration) error {
	return token.Extend(ctx, held.locker.client, held.keys[0], held.token, ttl, &held.until)
}
