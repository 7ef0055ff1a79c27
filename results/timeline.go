package results

import "slices"

// Slice is a part of a run's window, usually one second.
type Slice struct {
	At           float64 `json:"at_seconds"`        // its start, since the window opened
	Seconds      float64 `json:"seconds" add:"sum"` // its length
	Acquisitions int64   `json:"acquisitions" add:"sum"`
	Waiting      int     `json:"waiting"` // clients that waited at its end
	// The waits in the slice, as Distribution describes those of the window; nil without any. WaitMax is
	// the longest that ended.
	WaitP50 *Bound `json:"wait_p50" add:"max"` // of two slices the larger
	WaitP99 *Bound `json:"wait_p99" add:"max"`
	WaitMax *Bound `json:"wait_max" add:"max"`

	Commands   *int64   `json:"commands" add:"sum"`           // calls at Redis, all nodes
	RedisCPU   *float64 `json:"redis_cpu_seconds" add:"sum"`  // all nodes, including lockbench's own readings
	RoundTrips *int64   `json:"client_round_trips" add:"sum"` // requests written by the generator
	Connected  *int64   `json:"connections,omitempty"`        // at its end
}

// Halve joins each two neighbours, so that a long window has few slices. It takes the larger percentiles.
func Halve(parts []Slice) []Slice {
	var halved []Slice
	for pair := range slices.Chunk(parts, 2) {
		joined, last := pair[0], pair[len(pair)-1]
		if len(pair) == 2 {
			addFields(&joined, last)
		}
		joined.Waiting, joined.Connected = last.Waiting, last.Connected
		halved = append(halved, joined)
	}
	return halved
}
