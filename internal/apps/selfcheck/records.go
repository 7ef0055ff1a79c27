package selfcheck

import (
	"context"
	"sync"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
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

// watched runs a strategy with an Observer.
func (s *session) watched(ctx context.Context, v strategies.Variant, w workloads.Spec, seen engine.Observer) (*results.Run, error) {
	job := s.job(v, w)
	job.Observer = seen
	return s.do(ctx, job)
}
