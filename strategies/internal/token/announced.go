package token

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
)

// Announced is a lease of a lock with three keys: the owner's token, the waiters, and what
// tells them of a release. The Lease's own Free and GiveBack would tell nobody.
type Announced struct {
	Lease          // its Name is the first of Keys
	Keys  []string // see AnnouncedKeys
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

// Release frees the lock if it is still the caller's, and tells the waiters.
func (l *Announced) Release(ctx context.Context) error {
	freed, err := l.Script.Run(ctx, l.Client, l.Keys, l.Token, l.Argument).Int()
	if err != nil {
		return fmt.Errorf("release %q: %w", l.Name, indeterminate.Because(ctx, err))
	}
	if freed == 0 {
		return strategies.ErrNotHeld
	}
	return nil
}
