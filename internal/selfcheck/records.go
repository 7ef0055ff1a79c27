package selfcheck

import (
	"slices"
	"sync"

	"github.com/lockbench/lockbench/workloads"
)

// records is an Observer that keeps every acquisition.
type records struct {
	mu  sync.Mutex
	all []workloads.Acquisition
}

// Holding is of no interest.
func (r *records) Holding(int) {}

// Releasing is of no interest.
func (r *records) Releasing(int) {}

// Acquired keeps it.
func (r *records) Acquired(a workloads.Acquisition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, a)
}

// counted are those in the window's figures.
func (r *records) counted() []workloads.Acquisition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.all), func(a workloads.Acquisition) bool { return !a.Counted })
}
