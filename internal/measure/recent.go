package measure

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lockbench/lockbench/results"
)

// newRecent is a histogram for a slice of the timeline. It has two digits: every
// second those of all shards are added up and emptied, while clients wait for it.
func newRecent() *histogram {
	return &histogram{Histogram: hdrhistogram.New(1, int64(time.Hour), 2)}
}

// Recent is a summary of the waits since it was last asked for: those that have
// ended, those still under way, and those that had been under way already.
// Percentiles are within 1 %.
type Recent struct {
	P50, P99 *results.Bound // nil without any
	Max      *results.Bound // of those that have ended; nil without any
}

// Recent summarises the waits in the window since the last call. It takes the
// ages, in nanoseconds, of the waits that are under way now. It is one caller's.
func (r *Recorder) Recent(ages []int64) Recent {
	var sum total
	r.eachShard(func(s *shard) {
		sum.add(s.recent)
		s.recent.reset()
	})
	ended, open, before := sum.all(), newRecent(), r.underWay
	for _, age := range ages {
		open.record(age)
	}
	r.underWay = open
	o := results.Observations{Ended: ended.Histogram, Censored: open.Histogram}
	if before != nil {
		o.Entered = before.Histogram
	}
	var most *results.Bound
	if ended.TotalCount() > 0 {
		most = &results.Bound{NS: ended.largest}
	}
	seen := results.Estimate(o, &results.Bound{NS: max(ended.largest, open.largest)})
	return Recent{P50: seen.Quantile(0.5), P99: seen.Quantile(0.99), Max: most}
}

// Ages appends for how long, in nanoseconds, those who wait for the key have been
// waiting now.
func (k *Key) Ages(ages []int64, now int64) []int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.arrivals.places[:k.arrivals.next] {
		if w != nil {
			ages = append(ages, max(0, now-w.since))
		}
	}
	return ages
}
