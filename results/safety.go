package results

// Safety is the audit of a run, warm-up and drain included: exclusion is not
// allowed to break at any time.
type Safety struct {
	// Overlaps counts the times that more held a key than its capacity while the
	// earlier leases were still valid; OverlapNS is how long in all.
	Overlaps  int64 `json:"overlaps" merge:"sum"`
	OverlapNS int64 `json:"overlap_ns" merge:"sum"`
	// ExpiredOverlaps counts the overlaps with a holder that had outstayed its lease.
	ExpiredOverlaps  int64 `json:"late_overlaps" merge:"sum"`
	ExpiredOverlapNS int64 `json:"late_overlap_ns" merge:"sum"`

	MaxHolders        int   `json:"max_holders" merge:"max"`
	FencedLeases      int64 `json:"fenced_leases" merge:"sum"`      // leases that carried a token
	FencingRegression int64 `json:"fencing_regression" merge:"sum"` // tokens not larger than an earlier one
	LostLeases        int64 `json:"lost_leases" merge:"sum"`        // releases that found the lease gone

	// LostUpdates is how far the counters fell short of the increments done under
	// the lock; nil without such work.
	LostUpdates *int64 `json:"lost_updates" merge:"-"`
	// Refused counts the updates that the counter refused because of a stale fencing
	// token; nil where it looked at none.
	Refused *int64 `json:"refused_updates" merge:"known"`

	// Leftovers are what the strategy left behind without declaring it: keys,
	// connections, subscriptions; at most 20 are named.
	Leftovers     []string `json:"leftovers,omitempty" merge:"known"`
	LeftoverCount *int64   `json:"leftover_count" merge:"known"` // nil where the servers would not tell
	Hung          int      `json:"stuck_clients" merge:"sum"`    // that did not come back from Acquire or Release when told to stop

	// Broken names each claimed guarantee that did not hold; exit code 111.
	Broken []string `json:"broken_claims,omitempty" merge:"-"`
}

// SumSafety puts together what was seen of the parts of one run, as Combine does.
func SumSafety(parts []Safety) Safety {
	sum, err := Combine(parts)
	if err != nil {
		panic(err) // a field without a tag
	}
	return sum
}
