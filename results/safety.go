package results

// Safety is the audit of a run, warm-up and drain included: exclusion is not
// allowed to break at any time.
type Safety struct {
	// Overlaps counts the times that more held a key than its capacity while the
	// earlier leases were still valid; OverlapNS is how long in all.
	Overlaps  int64 `json:"overlaps"`
	OverlapNS int64 `json:"overlap_ns"`
	// Late counts the overlaps with a holder that had outstayed its lease.
	Late   int64 `json:"late_overlaps"`
	LateNS int64 `json:"late_overlap_ns"`

	MaxHolders        int   `json:"max_holders"`
	FencedLeases      int64 `json:"fenced_leases"`      // leases that carried a token
	FencingRegression int64 `json:"fencing_regression"` // tokens not larger than an earlier one
	LostLeases        int64 `json:"lost_leases"`        // releases that found the lease gone

	// LostUpdates is how far the counters fell short of the increments done under
	// the lock; nil without such work.
	LostUpdates *int64 `json:"lost_updates"`
	// Refused counts the updates that the counter refused because of a stale fencing
	// token; nil where it looked at none.
	Refused *int64 `json:"refused_updates"`

	// Leftovers are what the strategy left behind without declaring it: keys,
	// connections, subscriptions; at most 20 are named.
	Leftovers     []string `json:"leftovers,omitempty"`
	LeftoverCount *int64   `json:"leftover_count"` // nil where the servers would not tell
	Stuck         int      `json:"stuck_clients"`  // that did not come back from Acquire or Release when told to stop

	// Broken names each claimed guarantee that did not hold; exit code 111.
	Broken []string `json:"broken_claims,omitempty"`
}

// Add counts in what was seen elsewhere in the same run. LostUpdates, which only
// who knows of every increment can tell, and Broken are left as they are.
func (s *Safety) Add(other Safety) {
	s.Overlaps += other.Overlaps
	s.OverlapNS += other.OverlapNS
	s.Late += other.Late
	s.LateNS += other.LateNS
	s.MaxHolders = max(s.MaxHolders, other.MaxHolders)
	s.FencedLeases += other.FencedLeases
	s.FencingRegression += other.FencingRegression
	s.LostLeases += other.LostLeases
	s.Refused = plus(s.Refused, other.Refused)
	s.Leftovers = append(s.Leftovers, other.Leftovers...)
	s.LeftoverCount = plus(s.LeftoverCount, other.LeftoverCount)
	s.Stuck += other.Stuck
}

// plus adds what is known.
func plus(a, b *int64) *int64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return new(*a + *b)
}
