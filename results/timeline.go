package results

// Slice is a part of a run's window, usually one second.
type Slice struct {
	At           float64 `json:"at_seconds"` // its start, since the window opened
	Seconds      float64 `json:"seconds"`    // its length
	Acquisitions int64   `json:"acquisitions"`
	Waiting      int     `json:"waiting"` // clients that waited at its end
	// The waits in the slice, as Distribution describes those of the window; lower bounds where
	// AtLeast says so; nil without any. WaitMax is the longest wait that ended.
	WaitP50        *int64 `json:"wait_p50_ns"`
	WaitP50AtLeast bool   `json:"wait_p50_at_least,omitempty"`
	WaitP99        *int64 `json:"wait_p99_ns"`
	WaitP99AtLeast bool   `json:"wait_p99_at_least,omitempty"`
	WaitMax        *int64 `json:"wait_max_ns"`

	Commands   *int64   `json:"commands"`              // calls at Redis, all nodes
	RedisCPU   *float64 `json:"redis_cpu_seconds"`     // all nodes, including lockbench's own readings
	RoundTrips *int64   `json:"client_round_trips"`    // requests written by the generator
	Connected  *int64   `json:"connections,omitempty"` // at its end
}

// SetWaits sets the percentiles and the longest wait.
func (s *Slice) SetWaits(p50, p99, most *Bound) {
	set := func(b *Bound) (*int64, bool) {
		if b == nil {
			return nil, false
		}
		return &b.NS, b.AtLeast
	}
	s.WaitP50, s.WaitP50AtLeast = set(p50)
	s.WaitP99, s.WaitP99AtLeast = set(p99)
	s.WaitMax, _ = set(most)
}

// waits returns the arguments of SetWaits.
func (s Slice) waits() (p50, p99, most *Bound) {
	get := func(ns *int64, atLeast bool) *Bound {
		if ns == nil {
			return nil
		}
		return &Bound{NS: *ns, AtLeast: atLeast}
	}
	return get(s.WaitP50, s.WaitP50AtLeast), get(s.WaitP99, s.WaitP99AtLeast), get(s.WaitMax, false)
}

// join merges two neighbouring slices. It takes the larger percentiles.
func (s Slice) join(next Slice) Slice {
	s.Seconds += next.Seconds
	s.Acquisitions += next.Acquisitions
	s.Waiting = next.Waiting
	p50, p99, most := s.waits()
	nextP50, nextP99, nextMost := next.waits()
	s.SetWaits(Longest(p50, nextP50), Longest(p99, nextP99), Longest(most, nextMost))
	s.Commands = plus(s.Commands, next.Commands)
	s.RedisCPU = plus(s.RedisCPU, next.RedisCPU)
	s.RoundTrips = plus(s.RoundTrips, next.RoundTrips)
	s.Connected = next.Connected
	return s
}

// Halve joins each two neighbours, so that a long window has few slices.
func Halve(slices []Slice) []Slice {
	var halved []Slice
	for i := 0; i < len(slices); i += 2 {
		if i+1 == len(slices) {
			halved = append(halved, slices[i])
			continue
		}
		halved = append(halved, slices[i].join(slices[i+1]))
	}
	return halved
}
