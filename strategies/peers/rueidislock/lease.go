package rueidislock

import (
	"context"
	"fmt"
	"strconv"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/token"
)

// lease is a lock that rueidislock keeps until it is released.
type lease struct {
	locker  *Locker
	name    string
	ctx     context.Context // rueidislock ends it when it knows the lock to be lost
	release func()          // returns when all of its goroutines have ended

	left []*token.Lease // the keys of a lease that Close found held
}

// Lost returns a channel that is closed when a key was lost that the majority needs, and at
// the release.
func (held *lease) Lost() <-chan struct{} { return held.ctx.Done() }

// Release has rueidislock delete the keys. rueidislock does not say whether it could.
func (held *lease) Release(ctx context.Context) error {
	l := held.locker
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return held.releaseLeft(ctx)
	}
	delete(l.held, held)
	lost := held.ctx.Err() != nil
	released := make(chan struct{})
	l.running.Go(func() { // it ignores contexts
		defer close(released)
		held.release()
	})
	l.mu.Unlock()
	select {
	case <-released:
	case <-ctx.Done():
		return fmt.Errorf("release %q: %w", held.name, ctx.Err())
	}
	if lost {
		return strategies.ErrNotHeld
	}
	return nil
}

// remember records what the keys hold, so that the lease can be released without rueidislock,
// which hides that value. All keys hold the same; a key that the majority did not need may still be
// on its way.
func (held *lease) remember() {
	ctx, cancel := context.WithTimeout(context.Background(), settling)
	defer cancel()
	client, keys := held.locker.config.Nodes[0].Client, held.locker.keys
	name := func(i int) string { return prefix + ":" + strconv.Itoa(i) + ":" + held.name }
	holds := map[string]int{} // how many keys hold a value
	for i := range keys {
		if value, err := client.Get(ctx, name(i)).Result(); err == nil {
			holds[value]++
		}
	}
	if held.ctx.Err() != nil { // another holder may have the keys
		return
	}
	for value, n := range holds {
		for i := range keys {
			if n > keys/2 {
				held.left = append(held.left, &token.Lease{Client: client, Name: name(i), Token: value})
			}
		}
	}
}

// releaseLeft releases after Close.
func (held *lease) releaseLeft(ctx context.Context) error {
	freed := 0
	for _, key := range held.left {
		ok, err := key.Free(ctx)
		if err != nil {
			return fmt.Errorf("release %q: %w", held.name, err)
		}
		if ok {
			freed++
		}
	}
	held.left = nil
	if freed <= held.locker.keys/2 {
		return strategies.ErrNotHeld
	}
	return nil
}
