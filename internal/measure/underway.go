package measure

import (
	"time"

	"github.com/lockbench/lockbench/results"
)

// Held returns the sum of all holds in the window up to the instant now, including leases that clients still hold.
func (r *Recorder) Held(keys []*Key, now int64) time.Duration {
	var held int64
	r.eachShard(func(s *shard) { held += s.held })
	for _, k := range keys {
		k.mu.Lock()
		for _, h := range k.holders {
			held += r.window.clip(h.granted, now, r.window.End())
		}
		k.mu.Unlock()
	}
	return time.Duration(held)
}

// UnderWay returns the distribution of the open waits. ages holds their current ages, and elapsed is how long the
// window has been open.
func UnderWay(ages []results.Wait, elapsed int64) results.Distribution {
	seen, before := newHistogram(), newHistogram()
	d := results.Distribution{Censored: int64(len(ages))}
	for _, age := range ages {
		seen.record(age.NS)
		if age.NS > elapsed { // it has been observed only since the window opened
			before.record(age.NS - elapsed)
		}
		d.Max = results.Longest(d.Max, &results.Bound{NS: age.NS, AtLeast: true})
	}
	d.CensoredHistogram, d.EnteredHistogram = results.Counted(seen.Histogram), results.Counted(before.Histogram)
	return d
}
