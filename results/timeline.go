package results

// Slice is a part of a run's window, usually one second.
type Slice struct {
	At           float64 `json:"at_seconds"`        // its start, since the window opened
	Seconds      float64 `json:"seconds" add:"sum"` // its length
	Acquisitions int64   `json:"acquisitions" add:"sum"`
	Waiting      int     `json:"waiting"` // clients that waited at its end
	// The waits in the slice, as Distribution describes those of the window; lower bounds where
	// AtLeast says so; nil without any. WaitMax is the longest wait that ended.
	WaitP50        *int64 `json:"wait_p50_ns"`
	WaitP50AtLeast bool   `json:"wait_p50_at_least,omitempty"`
	WaitP99        *int64 `json:"wait_p99_ns"`
	WaitP99AtLeast bool   `json:"wait_p99_at_least,omitempty"`
	WaitMax        *int64 `json:"wait_max_ns" add:"max"`

	Commands   *int64   `json:"commands" add:"sum"`           // calls at Redis, all nodes
	RedisCPU   *float64 `json:"redis_cpu_seconds" add:"sum"`  // all nodes, including lockbench's own readings
	RoundTrips *int64   `json:"client_round_trips" add:"sum"` // requests written by the generator
	Connected  *int64   `json:"connections,omitempty"`        // at its end
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

// join merges two neighbouring slices. It takes the larger percentiles.
func (s Slice) join(next Slice) Slice {
	addFields(&s, next)
	bound := func(ns *int64, atLeast bool) *Bound {
		if ns == nil {
			return nil
		}
		return &Bound{NS: *ns, AtLeast: atLeast}
	}
	p50 := Longest(bound(s.WaitP50, s.WaitP50AtLeast), bound(next.WaitP50, next.WaitP50AtLeast))
	p99 := Longest(bound(s.WaitP99, s.WaitP99AtLeast), bound(next.WaitP99, next.WaitP99AtLeast))
	s.SetWaits(p50, p99, bound(s.WaitMax, false))
	s.Waiting, s.Connected = next.Waiting, next.Connected
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
