// Package background runs goroutines that may outlive the Locker method that started them, and lets the Locker's Close
// wait for them.
package background

import "sync"

// Group starts goroutines until it is closed. A sync.WaitGroup is not sufficient, because its Go must not be called
// during Wait, whereas a lock's Close may be called at any time. The zero value is ready for use.
type Group struct {
	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// Go runs f in a goroutine and returns true. If the Group is closed, it returns false without running f.
func (g *Group) Go(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.running.Go(f)
	return true
}

// Closed reports whether Close was called.
func (g *Group) Closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// Close refuses new goroutines and waits for the running ones.
func (g *Group) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.running.Wait()
}
