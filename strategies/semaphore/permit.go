package semaphore

import (
	"context"
	_ "embed" // the scripts
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/bounded"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/pending"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

var (
	//go:embed prepare.lua
	prepareSource string
	//go:embed acquire.lua
	acquireSource string
	//go:embed release.lua
	releaseSource string
	//go:embed extend.lua
	extendSource string

	prepareScript = redis.NewScript(prepareSource)
	acquireScript = redis.NewScript(acquireSource)
	releaseScript = redis.NewScript(releaseSource)
	extendScript  = redis.NewScript(extendSource)
)

// permit is the common part of the two kinds of permit, lasting and expirable.
type permit struct {
	locker *Locker
	name   string
	topic  redisson.Topic
	id     string // the id of an expirable permit, 16 bytes as in Redisson; "" for other permits
}

// keys returns the semaphore's key and, if the permit is expirable, the key of the deadlines, in the same hash slot.
func (held *permit) keys() []string {
	if held.id == "" {
		return []string{held.name}
	}
	return []string{held.name, redisson.Suffixed(held.name, "timeout")}
}

// give sends the release of the permit once, through the given client. It returns ErrNotHeld if the permit has expired.
func (held *permit) give(ctx context.Context, client redis.Scripter) error {
	args := []any{held.topic.Channel, held.topic.Command()}
	if held.id != "" {
		args = append(args, held.id, time.Now().UnixMilli())
	}
	there, err := redisson.Flag(releaseScript.Run(ctx, client, held.keys(), args...))
	if err == nil && !there {
		err = strategies.ErrNotHeld
	}
	return err
}

// releasing returns the error that Release returns for an error of the release command. It adds the name of the
// semaphore to all errors except ErrNotHeld.
func (held *permit) releasing(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, strategies.ErrNotHeld) {
		return err
	}
	return fmt.Errorf("release %q: %w", held.name, indeterminate.Because(ctx, err))
}

// lasting is a permit that does not expire. Redis cannot distinguish a repeated release from the release of another
// holder, so a release is repeated only if Redis has certainly not executed it.
type lasting struct {
	permit
	back pending.Release

	mu       sync.Mutex
	sending  bool
	released bool // true even if this is uncertain, because losing a permit is safer than adding one
}

// newLasting returns a permit that has not been acquired yet.
func newLasting(held permit) *lasting {
	p := &lasting{permit: held}
	p.back.Send = func(ctx context.Context) error { return p.once(ctx, nil) }
	return p
}

var errUnderWay = errors.New("another release of the permit is under way")

// Release releases the permit. It returns ErrNotHeld if the permit was already released. A release that Redis has
// refused is repeated in the background. A release that got no reply is not repeated, and the permit then counts as
// released.
func (held *lasting) Release(ctx context.Context) error {
	l := held.locker
	err := l.releases.Calls.Do(ctx, func() error {
		err := held.once(ctx, strategies.ErrNotHeld)
		held.unlessGiven(err)
		return err
	})
	held.unlessGiven(err)
	return held.releasing(ctx, err)
}

// unlessGiven makes the Locker repeat a release in the background if err, the release's error, shows that Redis has not
// executed the release.
func (held *lasting) unlessGiven(err error) {
	if err != nil && !errors.Is(err, strategies.ErrNotHeld) && !indeterminate.MayHaveRun(err) {
		held.locker.releases.Add(&held.back)
	}
}

// once sends a release. It returns errUnderWay if another release of this permit is under way. If the permit was
// already released, it returns the argument released.
func (held *lasting) once(ctx context.Context, released error) error {
	held.mu.Lock()
	if held.sending || held.released {
		defer held.mu.Unlock()
		if held.released {
			return released
		}
		return errUnderWay
	}
	held.sending = true
	held.mu.Unlock()
	err := held.give(ctx, indeterminate.ScriptsOnce{Scripter: held.locker.client})
	held.mu.Lock()
	defer held.mu.Unlock()
	held.sending = false
	held.released = err == nil || errors.Is(err, strategies.ErrNotHeld) || indeterminate.MayHaveRun(err)
	return err
}

// expirable is a permit that Redis frees after its deadline. An id identifies it, so its release can be repeated
// safely.
type expirable struct {
	permit
	until validity.Until

	mu      sync.Mutex
	longest time.Duration    // the longest TTL requested so far
	back    *pending.Release // nil before the first Release
}

// ValidUntil returns the permit's deadline in Redis, as far as this process knows it.
func (held *expirable) ValidUntil() time.Time { return held.until.Get() }

// Release releases the permit. It returns ErrNotHeld if the permit has expired. If Redis refuses the release, or ctx
// ends before the reply, the release is repeated in the background.
func (held *expirable) Release(ctx context.Context) error {
	held.mu.Lock()
	if held.back == nil {
		held.back = held.release(nil)
	}
	back := held.back
	held.mu.Unlock()
	return held.releasing(ctx, held.locker.releases.Release(ctx, back))
}

// release returns what pending.Releases needs to repeat the release of the permit. If asked is nil, the permit was
// granted. Otherwise an acquire that got no reply may have been granted the permit, and asked is the field Asked of
// pending.Release.
func (held *expirable) release(asked <-chan struct{}) *pending.Release {
	return &pending.Release{TTL: held.longest, Asked: asked, Send: func(ctx context.Context) error {
		return held.give(ctx, held.locker.client)
	}}
}

// Extend moves the permit's deadline to ttl from now, or returns ErrNotHeld if the permit has expired. It never moves
// the deadline in Redis to an earlier time, because a late command could then end the permit at once.
func (held *expirable) Extend(ctx context.Context, ttl time.Duration) error {
	l := held.locker
	held.mu.Lock()
	held.longest = max(held.longest, ttl)
	held.mu.Unlock()
	now := time.Now()
	ms, until := deadline(now, ttl)
	extended, err := bounded.Get(ctx, &l.releases.Calls, func() (bool, error) {
		return redisson.Flag(extendScript.Run(ctx, l.client, held.keys()[1:], held.id, now.UnixMilli(), ms))
	})
	if err != nil {
		return fmt.Errorf("extend %q: %w", held.name, indeterminate.Because(ctx, err))
	}
	if !extended {
		return strategies.ErrNotHeld
	}
	held.until.Raise(until)
	return nil
}

// deadline returns when a permit that is taken now for ttl expires, in epoch ms and as an instant.
func deadline(now time.Time, ttl time.Duration) (ms int64, until time.Time) {
	ms = now.UnixMilli() + max(ttl.Milliseconds(), 1)
	return ms, now.Add(time.UnixMilli(ms).Sub(now))
}
