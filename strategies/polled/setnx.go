package polled

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/bounded"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/pending"
	"github.com/lockbench/lockbench/strategies/internal/token"
)

// SetNXOptions are the options that a user can set, as in setnx:delay=5ms.
type SetNXOptions struct {
	Delay time.Duration `opt:"delay" help:"sleep between two tries"`
}

// Validate rejects a delay that is not positive.
func (o SetNXOptions) Validate() error {
	if o.Delay <= 0 {
		return fmt.Errorf("delay must be positive, not %v", o.Delay)
	}
	return nil
}

// openSetNX returns a Locker of setnx. It ignores the config's TTL, because a lock of setnx has none.
func openSetNX(config goredis.Config, o SetNXOptions) (*Locker, error) {
	return open(config, protocol{
		name: "setnx", options: o.Validate(), backoff: SpinOptions{Backoff: Fixed, Base: o.Delay},
		try: func(ctx context.Context, held *token.Lease, _ time.Duration) (bool, error) {
			return setNX(ctx, held, getThenDel)
		},
		granted: func(held *token.Lease) strategies.Lease { return &owned{held: held, free: getThenDel} },
	})
}

// These are the values of the option check, which determines how a release of setnx-expire checks the owner of the
// lock.
const (
	atomically = "true"  // by a script that compares and deletes
	separately = "get"   // by a GET that precedes the DEL, which is unsafe
	never      = "false" // not at all
)

// releases maps each value of check to the function that releases a lock in that way.
var releases = map[string]func(context.Context, *token.Lease) error{
	atomically: compareAndDel, separately: getThenDel, never: del,
}

// SetNXExpireOptions are the options that a user can set, as in setnx-expire:check=get.
type SetNXExpireOptions struct {
	Delay time.Duration `opt:"delay" help:"sleep between two tries"`
	Check string        `opt:"check" help:"delete the lock only if the caller still holds it, by one script (true) or by GET and then DEL (get), or always (false)"`
}

// Validate returns the errors of delay and check, joined.
func (o SetNXExpireOptions) Validate() error {
	err := SetNXOptions{o.Delay}.Validate()
	if releases[o.Check] == nil {
		err = errors.Join(err, fmt.Errorf("check must be %s, %s or %s, not %q", atomically, separately, never, o.Check))
	}
	return err
}

// Refine claims exclusion only if a release compares and deletes in one step.
func (o SetNXExpireOptions) Refine(info strategies.Info) strategies.Info {
	info.Claims.Exclusion = o.Check == atomically
	info.Caveat = "a crash between SETNX and EXPIRE blocks the lock for ever"
	if o.Check != atomically {
		info.Caveat += "; a late release deletes another client's lock"
	}
	return info
}

// openSetNXExpire returns a Locker of setnx-expire, whose leases have the config's TTL.
func openSetNXExpire(config goredis.Config, o SetNXExpireOptions) (*Locker, error) {
	return open(config, protocol{
		name: "setnx-expire", options: o.Validate(), backoff: SpinOptions{Backoff: Fixed, Base: o.Delay},
		scripted: true,
		try: func(ctx context.Context, held *token.Lease, ttl time.Duration) (bool, error) {
			taken, err := setNX(ctx, held, compareAndDel)
			if taken {
				err = expire(ctx, held, ttl)
			}
			return taken, err
		},
		granted: func(held *token.Lease) strategies.Lease {
			return &timed{owned{held: held, free: releases[o.Check], blind: o.Check == never}}
		},
	})
}

// setNX takes a free key, without a TTL. If the reply is lost, the key is released in the background. If this release
// does not succeed before the Locker is closed, the key stays until an operator deletes it.
func setNX(ctx context.Context, held *token.Lease, free func(context.Context, *token.Lease) error) (bool, error) {
	taken, err := bounded.Get(ctx, &held.Releases.Calls, func() (bool, error) {
		return held.Client.Do(ctx, "SETNX", held.Name, held.Token).Bool() // client.SetNX sends a SET
	})
	if err == nil {
		return taken, nil
	}
	if asked := pending.Asked(err); asked != nil {
		held.Releases.GiveBack(ctx, &pending.Release{
			Send: func(ctx context.Context) error { return free(ctx, held) }, Asked: asked,
		})
	}
	return false, fmt.Errorf("setnx %q: %w", held.Name, indeterminate.Because(ctx, err))
}

// expire sets the TTL of a key. After an error the caller does not hold the lock.
func expire(ctx context.Context, held *token.Lease, ttl time.Duration) error {
	held.Until.Set(time.Now().Add(ttl))
	limited, err := bounded.Get(ctx, &held.Releases.Calls, func() (bool, error) {
		return held.Client.PExpire(ctx, held.Name, ttl).Result() // not EXPIRE, which has a resolution of seconds
	})
	switch {
	case err != nil:
		held.GiveBack(ctx, nil) // if this does not succeed before the Locker is closed, the lock stays taken forever
		return fmt.Errorf("set the TTL of %q: %w", held.Name, indeterminate.Because(ctx, err))
	case !limited:
		return fmt.Errorf("set the TTL of %q: %w: another client has deleted the key", held.Name, strategies.ErrNotHeld)
	}
	return nil
}

// owned is a lease that can only be released.
type owned struct {
	held    *token.Lease
	free    func(context.Context, *token.Lease) error // releases the lock
	blind   bool                                      // free deletes the lock without checking its owner
	once    sync.Once
	release pending.Release
}

// Release releases the lock by the function free. A failed release is repeated in the background, unless a repetition
// could delete the lock of another client.
func (o *owned) Release(ctx context.Context) error {
	send := func(ctx context.Context) error { return o.free(ctx, o.held) }
	if o.blind {
		return o.held.Releases.Calls.Do(ctx, func() error { return send(ctx) })
	}
	o.once.Do(func() { o.release.Send = send })
	return o.held.Releases.Release(ctx, &o.release)
}

// timed is an owned lease with a TTL.
type timed struct{ owned }

// ValidUntil returns the end of the lease: one TTL after an instant just before the PEXPIRE was sent.
func (t *timed) ValidUntil() time.Time { return t.held.ValidUntil() }

// compareAndDel deletes the lock by a script if the key still holds the owner's token.
func compareAndDel(ctx context.Context, held *token.Lease) error {
	freed, err := held.Free(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("release %q: %w", held.Name, indeterminate.Because(ctx, err))
	case !freed:
		return strategies.ErrNotHeld
	}
	return nil
}

// getThenDel checks the owner and then deletes the lock, in two commands. If another client acquires the lock between
// them, getThenDel deletes that client's lock.
func getThenDel(ctx context.Context, held *token.Lease) error {
	found, err := held.Client.Get(ctx, held.Name).Result()
	switch {
	case errors.Is(err, redis.Nil), err == nil && found != held.Token:
		return strategies.ErrNotHeld
	case err != nil:
		return fmt.Errorf("read the owner of %q: %w", held.Name, indeterminate.Because(ctx, err))
	}
	return del(ctx, held)
}

// del deletes the lock without checking the owner. It returns ErrNotHeld if the key does not exist.
func del(ctx context.Context, held *token.Lease) error {
	deleted, err := held.Client.Del(ctx, held.Name).Result()
	if err != nil {
		return fmt.Errorf("delete %q: %w", held.Name, indeterminate.Because(ctx, err))
	}
	if deleted == 0 {
		return strategies.ErrNotHeld
	}
	return nil
}
