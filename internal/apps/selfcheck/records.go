package selfcheck

import (
	"slices"
	"sync"

	"github.com/lockbench/lockbench/internal/engine"
)

// records is an Observer that keeps every acquisition.
type records struct {
	mu  sync.Mutex
	all []engine.Acquisition
}

// Holding does nothing.
func (r *records) Holding(int) {}

// Releasing does nothing.
func (r *records) Releasing(int) {}

// Acquired keeps the acquisition.
func (r *records) Acquired(a engine.Acquisition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, a)
}

// counted returns those in the window's figures.
func (r *records) counted() []engine.Acquisition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.all), func(a engine.Acquisition) bool { return !a.Counted })
}
