package results

// Safety is the audit of a run, including warm-up and drain: exclusion must hold at any time.
type Safety struct {
	// Overlaps counts how often more clients held a key than its capacity while the earlier
	// leases were still valid. OverlapNS is their total time.
	Overlaps  int64 `json:"overlaps" merge:"sum"`
	OverlapNS int64 `json:"overlap_ns" merge:"sum"`
	// ExpiredOverlaps counts the overlaps with a holder whose lease had run out.
	ExpiredOverlaps  int64 `json:"late_overlaps" merge:"sum"`
	ExpiredOverlapNS int64 `json:"late_overlap_ns" merge:"sum"`

	MaxHolders        int   `json:"max_holders" merge:"max"`
	FencedLeases      int64 `json:"fenced_leases" merge:"sum"`      // leases that carried a token
	FencingRegression int64 `json:"fencing_regression" merge:"sum"` // tokens not larger than an earlier one
	LostLeases        int64 `json:"lost_leases" merge:"sum"`        // releases that found that the lease had ended

	// LostUpdates is the number of increments under the lock that the counters lack; nil without
	// such work.
	LostUpdates *int64 `json:"lost_updates" merge:"-"`
	// Refused counts the updates that the counter refused because of a stale fencing token; nil if
	// it checked no token.
	Refused *int64 `json:"refused_updates" merge:"known"`

	// Leftovers are what the strategy left without declaring it: keys, connections,
	// subscriptions. At most 20 are named.
	Leftovers     []string `json:"leftovers,omitempty" merge:"known"`
	LeftoverCount *int64   `json:"leftover_count" merge:"known"` // nil if the servers could not be read
	Hung          int      `json:"stuck_clients" merge:"sum"`    // clients that did not return from Acquire or Release after the stop

	// Broken names each claimed guarantee that did not hold; the exit code is then 111.
	Broken []string `json:"broken_claims,omitempty" merge:"-"`
}

// SumSafety merges what was seen of the parts of one run, as Combine does.
func SumSafety(parts []Safety) Safety {
	sum, err := Combine(parts)
	if err != nil {
		panic(err) // a field without a tag
	}
	return sum
}
