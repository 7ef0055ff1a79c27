package measure

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lockbench/lockbench/results"
)

// newRecent returns a histogram for one slice of the timeline. It has two digits, because the
// histograms of all shards are added up and reset every second while clients wait.
func newRecent() *histogram {
	return &histogram{Histogram: hdrhistogram.New(1, int64(time.Hour), 2)}
}

// Recent summarises the waits since the previous call: those that have ended, and those
// still under way. Percentiles are within 1 %.
type Recent struct {
	P50, P99 *results.Bound // nil without any wait
	Max      *results.Bound // of the waits that have ended; nil without any
}

// Recent summarises the waits in the window since the last call. ages holds the ages, in
// nanoseconds, of the waits under way now. Only one goroutine may call it.
func (r *Recorder) Recent(ages []int64) Recent {
	var got, without total
	r.eachShard(func(s *shard) {
		got.add(s.recent.ended)
		without.add(s.recent.censored)
		s.recent.ended.reset()
		s.recent.censored.reset()
	})
	ended, censored, open, before := got.all(), without.all(), newRecent(), r.underWay
	for _, age := range ages {
		open.record(age)
		censored.record(age)
	}
	r.underWay = open
	o := results.Observations{Ended: ended.Histogram, Censored: censored.Histogram}
	if before != nil {
		o.Entered = before.Histogram
	}
	var most *results.Bound
	if ended.TotalCount() > 0 {
		most = &results.Bound{NS: ended.largest}
	}
	seen := results.Estimate(o, &results.Bound{NS: max(ended.largest, censored.largest)})
	return Recent{P50: seen.Quantile(0.5), P99: seen.Quantile(0.99), Max: most}
}

// Ages appends the time, in nanoseconds, that each waiter of the key has waited until now.
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
