package measure

import "github.com/lockbench/lockbench/results"

// Kind is a kind of duration whose distribution a run reports. Waits are separate, because
// the end of a wait is not always seen.
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

// places returns, for each kind, the field of a run with its distribution.
func places() [kindCount]func(*results.Run) *results.Distribution {
	return [kindCount]func(*results.Run) *results.Distribution{
		Hold:     func(r *results.Run) *results.Distribution { return &r.Speed.Hold },
		Release:  func(r *results.Run) *results.Distribution { return &r.Speed.Release },
		Handoff:  func(r *results.Run) *results.Distribution { return &r.Speed.Handoff },
		Service:  func(r *results.Run) *results.Distribution { return &r.Waiting.Service },
		Lateness: func(r *results.Run) *results.Distribution { return &r.Waiting.Lateness },
	}
}

// Took records a duration of a kind. It counts in the window in which it ends.
func (c *Client) Took(kind Kind, from, to int64) {
	if !c.window.Contains(to) {
		return
	}
	c.shard.mu.Lock()
	defer c.shard.mu.Unlock()
	c.shard.kinds[kind].record(to - from)
}

// Distributions fills in the distributions of a run.
func (r *Recorder) Distributions(run *results.Run) {
	for kind, place := range places() {
		*place(run) = describe(allEnded(r.total(func(s *shard) *histogram { return s.kinds[kind] })))
	}
	asked := 0.0
	r.eachShard(func(s *shard) { asked += s.asked })
	if n := run.Speed.Hold.Count; n > 0 && asked > 0 {
		run.Speed.HoldAsked = new(asked / float64(n))
	}
}
