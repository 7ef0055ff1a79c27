package results

import (
	"cmp"
	"maps"
	"slices"
)

// Record is what a run counted beside the histograms and counters in its other parts. Records add up, and
// Compute computes the figures from them, for one generator or the sum of several.
type Record struct {
	Clients int64   `json:"clients"`
	Keys    int64   `json:"keys"`
	AskedNS float64 `json:"asked_ns"` // sum of the holds that the workload asked for
	// Contended says that clients always waited for every key of a lock of capacity one.
	Contended bool `json:"contended"`
	// Granted leases came with these attempts and wake-ups of the strategies, between two readings.
	// nil for a black box.
	Granted  int64  `json:"granted"`
	Attempts *int64 `json:"attempts"`
	WakeUps  *int64 `json:"wake_ups"`
	Futile   *int64 `json:"futile_wake_ups"`
}

// enoughAcquisitions is the mean number per client from which on Jain's index is not mere chance.
const enoughAcquisitions = 20

// Compute sets the figures that follow from the record, the histograms and the time accounts.
func (r *Run) Compute() {
	for _, d := range r.distributions() {
		d.figures()
	}
	s, record := &r.Speed, r.Record
	s.PerSecond, s.ServedPerSecond, s.Utilisation = 0, 0, 0
	if seconds := float64(r.WindowNS) / 1e9; seconds > 0 {
		s.PerSecond = float64(s.Acquisitions) / seconds
		s.ServedPerSecond = float64(s.Served) / seconds
		s.Utilisation = r.TimeAccounting.Hold / seconds / float64(max(1, record.Keys))
	}
	s.HoldAsked, s.Gap = nil, nil
	if s.Hold.Count > 0 && record.AskedNS > 0 {
		s.HoldAsked = new(record.AskedNS / float64(s.Hold.Count))
	}
	if record.Contended && s.Hold.MeanNS != nil && s.Acquisitions > 0 {
		s.Gap = new(float64(record.Keys)*float64(r.WindowNS)/float64(s.Acquisitions) - *s.Hold.MeanNS)
	}
	perAcquisition := func(n *int64) *float64 {
		if n == nil || record.Granted == 0 {
			return nil
		}
		return new(float64(*n) / float64(record.Granted))
	}
	r.Effort = Effort{perAcquisition(record.Attempts), perAcquisition(record.WakeUps), perAcquisition(record.Futile)}
	r.Fairness.Jain = jain(r.Fairness.PerClient)
}

// jain returns Jain's index, see Fairness, of the clients' acquisitions; nil if there are too few.
func jain(perClient Histogram) *float64 {
	var clients, sum, squares float64
	for _, b := range perClient {
		n, x := float64(b.Count), b.middle()
		clients, sum, squares = clients+n, sum+n*x, squares+n*x*x
	}
	if clients == 0 || sum < enoughAcquisitions*clients {
		return nil
	}
	return new(sum * sum / (clients * squares))
}

// Add adds what another generator recorded of the same run, on the same servers in the same window; Compute
// then computes the figures. What only a single process can observe on both sides becomes unknown:
// handoffs, stalls, working set, reacquire distance, overtaken, passes and lost updates; bursts, faults
// and the timeline; what the servers counted in the whole run.
func (r *Run) Add(other Run) {
	record, more := &r.Record, other.Record
	r.WindowNS = (r.WindowNS*record.Clients + other.WindowNS*more.Clients) / max(1, record.Clients+more.Clients)
	r.Herd, r.Faults, r.Server.Whole, r.Timeline = nil, nil, nil, nil
	r.Partial = r.Partial || other.Partial
	r.Server.add(other.Server, r.Speed.Acquisitions, other.Speed.Acquisitions)
	record.Attempts = r.probed(record.Attempts, other, more.Attempts)
	record.WakeUps = r.probed(record.WakeUps, other, more.WakeUps)
	record.Futile = r.probed(record.Futile, other, more.Futile)
	record.Granted += more.Granted
	record.Clients += more.Clients
	record.AskedNS += more.AskedNS
	record.Contended = record.Contended && more.Contended

	s, w, f := &r.Speed, &r.Waiting, &r.Fairness
	s.Acquisitions += other.Speed.Acquisitions
	s.Served += other.Speed.Served
	s.Stall, s.Handoff = nil, Distribution{}
	s.Hold.add(other.Speed.Hold)
	s.Release.add(other.Speed.Release)
	w.PerAcquisition.add(other.Waiting.PerAcquisition)
	w.PerClient.add(other.Waiting.PerClient)
	w.Service.add(other.Waiting.Service)
	w.Lateness.add(other.Waiting.Lateness)
	w.Open += other.Waiting.Open
	w.Backlog += other.Waiting.Backlog
	w.TimedOut += other.Waiting.TimedOut
	*f = Fairness{
		AcquisitionsMin: min(f.AcquisitionsMin, other.Fairness.AcquisitionsMin),
		AcquisitionsMax: max(f.AcquisitionsMax, other.Fairness.AcquisitionsMax),
		Starved:         plus(f.Starved, other.Fairness.Starved),
		LongestWait:     Longest(f.LongestWait, other.Fairness.LongestWait),
		PerClient:       f.PerClient.Plus(other.Fairness.PerClient),
		LargestBypass:   max(f.LargestBypass, other.Fairness.LargestBypass),
	}
	r.Safety = r.Safety.Plus(other.Safety)
	r.Safety.LostUpdates = nil
	r.Generator.add(other.Generator)
	r.TimeAccounting.add(other.TimeAccounting)
	counts := map[string]int64{}
	for _, e := range slices.Concat(r.Errors, other.Errors) {
		counts[e.Error] += e.Count
	}
	r.Errors = CountErrors(counts)
}

// probed adds a count of the strategies. A generator without any lease does not need one.
func (r *Run) probed(count *int64, other Run, more *int64) *int64 {
	switch {
	case other.Speed.Acquisitions == 0 && more == nil:
		return count
	case r.Speed.Acquisitions == 0 && count == nil:
		return more
	}
	return plus(count, more)
}

// add adds what another generator read of the same servers: their counts are those of the first that read
// them, divided by the leases of both. They are unknown if a generator with leases has no reading.
func (s *Server) add(other Server, granted, more int64) {
	switch {
	case s.Window == nil && granted > 0 || other.Window == nil && more > 0:
		s.Window = nil
	case s.Window == nil:
		s.Window = other.Window.withoutSockets()
	case other.Window == nil:
		s.Window = s.Window.withoutSockets()
	default:
		d := *s.Window
		d.Acquisitions += other.Window.Acquisitions
		d.IdleCPU = higher(d.IdleCPU, other.Window.IdleCPU)
		d.RoundTrips = plus(d.RoundTrips, other.Window.RoundTrips)
		d.ClientBytesOut = plus(d.ClientBytesOut, other.Window.ClientBytesOut)
		d.ClientBytesIn = plus(d.ClientBytesIn, other.Window.ClientBytesIn)
		d.OtherTraffic = nil // it would be the other generator's
		s.Window = &d
	}
	if other.Peak != nil {
		peak := ServerPeak{}
		if s.Peak != nil {
			peak = *s.Peak
		}
		s.Peak = &ServerPeak{
			Clients:       higher(peak.Clients, other.Peak.Clients),
			Subscriptions: higher(peak.Subscriptions, other.Peak.Subscriptions),
			MemoryBytes:   higher(peak.MemoryBytes, other.Peak.MemoryBytes),
		}
	}
}

// withoutSockets leaves out what only this generator's sockets counted.
func (d *ServerDelta) withoutSockets() *ServerDelta {
	if d == nil {
		return nil
	}
	less := *d
	less.RoundTrips, less.ClientBytesOut, less.ClientBytesIn, less.OtherTraffic = nil, nil, nil, nil
	return &less
}

// Plus adds what was seen on other keys, or by another generator.
func (s Safety) Plus(other Safety) Safety {
	s.Overlaps += other.Overlaps
	s.OverlapNS += other.OverlapNS
	s.ExpiredOverlaps += other.ExpiredOverlaps
	s.ExpiredOverlapNS += other.ExpiredOverlapNS
	s.MaxHolders = max(s.MaxHolders, other.MaxHolders)
	s.FencedLeases += other.FencedLeases
	s.FencingRegression += other.FencingRegression
	s.LostLeases += other.LostLeases
	s.LostUpdates = known(s.LostUpdates, other.LostUpdates)
	s.Refused = known(s.Refused, other.Refused)
	s.Leftovers = slices.Concat(s.Leftovers, other.Leftovers)
	s.LeftoverCount = known(s.LeftoverCount, other.LeftoverCount)
	s.Hung += other.Hung
	s.Broken = slices.Concat(s.Broken, other.Broken)
	return s
}

// add takes the sum of two processes' loads, and the worse of what both say of a machine.
func (g *Generator) add(other Generator) {
	g.CPUSeconds += other.CPUSeconds
	g.CPUPercent += other.CPUPercent
	g.MachineIdle = lower(g.MachineIdle, other.MachineIdle)
	g.OtherCPU = higher(g.OtherCPU, other.OtherCPU)
	g.Steal = higher(g.Steal, other.Steal)
	g.StoodStill = higher(g.StoodStill, other.StoodStill)
	g.SchedulingP99 = max(g.SchedulingP99, other.SchedulingP99)
	g.GCCount += other.GCCount
	g.GCPauseNS += other.GCPauseNS
	g.GCCPUSeconds += other.GCCPUSeconds
	g.TimerOvershoot = higher(g.TimerOvershoot, other.TimerOvershoot)
	g.Starts += other.Starts
	g.LateStarts += other.LateStarts
	g.BehindStarts += other.BehindStarts
	g.PoolWaits += other.PoolWaits
	g.PoolWaitNS += other.PoolWaitNS
	g.PoolTimeouts += other.PoolTimeouts
	g.PeakRSS += other.PeakRSS
}

func (t *TimeAccounting) add(other TimeAccounting) {
	t.Wait += other.Wait
	t.Hold += other.Hold
	t.Release += other.Release
	t.Think += other.Think
	t.Window += other.Window
	t.WorstPercent = max(t.WorstPercent, other.WorstPercent)
	t.Balanced = t.Balanced && other.Balanced
}

// CountErrors lists the counts of errors, the most frequent first.
func CountErrors(counts map[string]int64) []ErrorCount {
	var list []ErrorCount
	for _, text := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, ErrorCount{text, counts[text]})
	}
	slices.SortStableFunc(list, func(a, b ErrorCount) int { return cmp.Compare(b.Count, a.Count) })
	return list
}

// number is a count or another figure.
type number interface{ int | int64 | float64 }

func minus[N number](later, earlier *N) *N {
	if later == nil || earlier == nil {
		return nil
	}
	return new(*later - *earlier)
}

// plus returns the sum; nil if one of the two is not known.
func plus[N number](a, b *N) *N {
	if a == nil || b == nil {
		return nil
	}
	return new(*a + *b)
}

// known returns the sum of the known values.
func known[N number](a, b *N) *N {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return plus(a, b)
}

// higher returns the larger known value, lower the smaller.
func higher[N number](a, b *N) *N {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

func lower[N number](a, b *N) *N {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}
