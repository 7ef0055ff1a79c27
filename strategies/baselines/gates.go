package baselines

import (
	"context"
	"sync"

	"github.com/lockbench/lockbench/strategies"
)

// Gates are mutexes in a process, one for each key. Waiters enter in the order of arrival. A gate exists while a
// caller is inside or waits for it.
type Gates struct {
	mu    sync.Mutex
	byKey map[string]*mutex
	spare *mutex // the mutex of the last key without users, for reuse
}

type mutex struct {
	inside chan struct{} // capacity 1; blocked senders enter in the order of arrival
	users  int           // callers inside or waiting
}

// Enter waits until no other caller is inside the gate of key, and enters. It reports whether it had to wait. If wait
// is false and another caller is inside, Enter returns ErrHeld. If ctx ends first, it returns the error of ctx.
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

// approach counts the caller as a user of the key's gate. It creates the gate if there is none.
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

// depart removes a caller from the users of the key's gate. If this was the last user, depart also removes the gate.
// The caller of depart must hold g.mu.
func (g *Gates) depart(key string, from *mutex) {
	if from.users--; from.users == 0 {
		delete(g.byKey, key)
		g.spare = from
	}
}

// Leave removes the caller from the gate, so that the caller that has waited longest can enter.
func (g *Gates) Leave(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.byKey[key]
	<-at.inside
	g.depart(key, at)
}

// Users returns the number of callers that are inside a key's gate or wait for it.
func (g *Gates) Users(key string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at := g.byKey[key]; at != nil {
		return at.users
	}
	return 0
}
