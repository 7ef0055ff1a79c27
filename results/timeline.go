package results

// Slice is a part of a run's window, as a rule a second: what changed in the
// course of it.
type Slice struct {
	At           float64 `json:"at_seconds"` // its beginning, since the window opened
	Seconds      float64 `json:"seconds"`    // its length
	Acquisitions int64   `json:"acquisitions"`
	Waiting      int     `json:"waiting"` // clients that waited at its end
	// The waits that ended in it; nil without any. Percentiles are within 7 %.
	WaitP50 *int64 `json:"wait_p50_ns"`
	WaitP99 *int64 `json:"wait_p99_ns"`
	WaitMax *int64 `json:"wait_max_ns"`

	Commands   *int64   `json:"commands"`              // calls at Redis, all nodes
	RedisCPU   *float64 `json:"redis_cpu_seconds"`     // all nodes, lockbench's looking on included
	RoundTrips *int64   `json:"client_round_trips"`    // requests written by the generator
	Connected  *int64   `json:"connections,omitempty"` // at its end
}

// join makes one slice of two neighbours. Its percentiles are the larger ones.
func (s Slice) join(next Slice) Slice {
	s.Seconds += next.Seconds
	s.Acquisitions += next.Acquisitions
	s.Waiting = next.Waiting
	s.WaitP50 = larger(s.WaitP50, next.WaitP50)
	s.WaitP99 = larger(s.WaitP99, next.WaitP99)
	s.WaitMax = larger(s.WaitMax, next.WaitMax)
	s.Commands = both(s.Commands, next.Commands)
	s.RedisCPU = both(s.RedisCPU, next.RedisCPU)
	s.RoundTrips = both(s.RoundTrips, next.RoundTrips)
	s.Connected = next.Connected
	return s
}

func larger(a, b *int64) *int64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

func both[N int64 | float64](a, b *N) *N {
	if a == nil || b == nil {
		return nil
	}
	sum := *a + *b
	return &sum
}

// Halve joins every two neighbours, so that a long window's slices stay few.
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
