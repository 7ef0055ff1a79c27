package measure

import (
	"fmt"

	"github.com/lockbench/lockbench/results"
)

// Kind is a kind of duration of which a run has a distribution, beside the waits, which
// are not always seen to their end.
type Kind int

// The kinds; results.Run defines each.
const (
	Hold Kind = iota
	Release
	Handoff
	Service
	Lateness
	kindCount
)

// places says where a run has the distribution of each kind.
func places() [kindCount]func(*results.Run) *results.Distribution {
	return [kindCount]func(*results.Run) *results.Distribution{
		Hold:     func(r *results.Run) *results.Distribution { return &r.Speed.Hold },
		Release:  func(r *results.Run) *results.Distribution { return &r.Speed.Release },
		Handoff:  func(r *results.Run) *results.Distribution { return &r.Speed.Handoff },
		Service:  func(r *results.Run) *results.Distribution { return &r.Waiting.Service },
		Lateness: func(r *results.Run) *results.Distribution { return &r.Waiting.Lateness },
	}
}

// Took records a duration of a kind, which belongs to the window in which it ends.
func (c *Client) Took(kind Kind, from, to int64) {
	if !c.window.Contains(to) {
		return
	}
	c.shard.mu.Lock()
	defer c.shard.mu.Unlock()
	c.shard.kinds[kind].record(to - from)
}

// Distributions fills in what a run has of each kind of duration.
func (r *Recorder) Distributions(run *results.Run) error {
	for kind, place := range places() {
		d, err := describe(allEnded(r.total(func(s *shard) *histogram { return s.kinds[kind] })))
		if err != nil {
			return fmt.Errorf("describe durations: %w", err)
		}
		*place(run) = d
	}
	return nil
}
