package baselines

import (
	"context"
	"sync"

	"github.com/lockbench/lockbench/strategies"
)

// Gates are a mutex for each key in a process. Waiters are served in the order of arrival. A gate exists while a
// caller is inside or waits before it.
type Gates struct {
	mu    sync.Mutex
	byKey map[string]*mutex
	spare *mutex // of the last key that was left, for the next
}

type mutex struct {
	inside chan struct{} // room for one; who waits to send gets in in the order of arrival
	users  int           // callers inside and before it
}

// Enter returns when the caller is alone inside, and whether it had to wait for that. A caller that
// does not wait gets ErrHeld.
func (g *Gates) Enter(ctx context.Context, key string, wait bool) (waited bool, err error) {
	at := g.approach(key)
	select {
	case at.inside <- struct{}{}:
		return false, nil
	default:
		err = strategies.ErrHeld
	}
	if wait {
		select {
		case at.inside <- struct{}{}:
			return true, nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.depart(key, at)
	return wait, err
}

// approach counts one more user of a key's gate.
func (g *Gates) approach(key string) *mutex {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.byKey[key]
	if at == nil {
		if at, g.spare = g.spare, nil; at == nil {
			at = &mutex{inside: make(chan struct{}, 1)}
		}
		if g.byKey == nil {
			g.byKey = map[string]*mutex{}
		}
		g.byKey[key] = at
	}
	at.users++
	return at
}

// depart counts one less; g.mu is held.
func (g *Gates) depart(key string, from *mutex) {
	if from.users--; from.users == 0 {
		delete(g.byKey, key)
		g.spare = from
	}
}

// Leave lets in the caller that has waited longest.
func (g *Gates) Leave(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.byKey[key]
	<-at.inside
	g.depart(key, at)
}

// Users returns how many are inside a key's gate and before it.
func (g *Gates) Users(key string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at := g.byKey[key]; at != nil {
		return at.users
	}
	return 0
}
