package gated

import (
	"context"
	"sync"

	"github.com/lockbench/lockbench/strategies"
)

// gates are the mutexes of one Locker. A gate exists while a caller is inside or waits before
// it.
type gates struct {
	mu    sync.Mutex
	byKey map[string]*gate
}

type gate struct {
	inside chan struct{} // room for one
	users  int           // callers inside and before it
}

// approach counts one more user of a key's gate.
func (g *gates) approach(key string) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.byKey[key]
	if at == nil {
		at = &gate{inside: make(chan struct{}, 1)}
		if g.byKey == nil {
			g.byKey = map[string]*gate{}
		}
		g.byKey[key] = at
	}
	at.users++
	return at
}

// depart counts one less; g.mu is held.
func (g *gates) depart(key string, from *gate) {
	if from.users--; from.users == 0 {
		delete(g.byKey, key)
	}
}

// enter waits until the caller is alone inside, or ctx ends.
func (g *gates) enter(ctx context.Context, key string) error {
	at := g.approach(key)
	select {
	case at.inside <- struct{}{}:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.depart(key, at)
	return ctx.Err()
}

// tryEnter says whether the caller is inside.
func (g *gates) tryEnter(key string) bool {
	at := g.approach(key)
	select {
	case at.inside <- struct{}{}:
		return true
	default:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.depart(key, at)
	return false
}

// leave lets in the caller that has waited longest.
func (g *gates) leave(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.byKey[key]
	<-at.inside
	g.depart(key, at)
}

// lease is a lease with its place inside the gate.
type lease struct {
	inner strategies.Lease
	gates *gates
	key   string
	once  sync.Once
}

// Release releases the strategy's lease, then lets the next caller in, even if the release
// failed.
func (held *lease) Release(ctx context.Context) error {
	defer held.once.Do(func() { held.gates.leave(held.key) })
	return held.inner.Release(ctx)
}

// Unwrap returns the strategy's lease, for what else it can do.
func (held *lease) Unwrap() strategies.Lease { return held.inner }
