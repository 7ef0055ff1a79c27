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

// Holding is of no interest.
func (r *records) Holding(int) {}

// Releasing is of no interest.
func (r *records) Releasing(int) {}

// Acquired keeps it.
func (r *records) Acquired(a engine.Acquisition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, a)
}

// counted are those in the window's figures.
func (r *records) counted() []engine.Acquisition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.all), func(a engine.Acquisition) bool { return !a.Counted })
}
