package measure

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lockbench/lockbench/results"
)

// histogram is an HDR histogram of nanoseconds. A duration beyond its range counts as the
// largest value, and overflow counts such durations.
type histogram struct {
	*hdrhistogram.Histogram
	overflow int64
	largest  int64 // exact, even beyond the range
	sum      float64
}

func newHistogram() *histogram {
	return &histogram{Histogram: results.NewHistogram()}
}

func (h *histogram) record(ns int64) { h.weigh(ns, 1) }

// weigh records a duration n times.
func (h *histogram) weigh(ns, n int64) {
	h.largest = max(h.largest, ns)
	h.sum += float64(n) * float64(ns)
	if top := h.HighestTrackableValue(); ns > top {
		h.overflow += n
		ns = top
	}
	if err := h.RecordValues(max(ns, 0), n); err != nil {
		panic(fmt.Sprintf("measure: %d ns does not fit the histogram: %v", ns, err)) // the bounds above rule it out
	}
}

func (h *histogram) reset() {
	h.Reset()
	h.overflow, h.largest, h.sum = 0, 0, 0
}

// total adds up histograms of the same layout, count by count. Merge is slower: it computes
// the value of each count.
type total struct {
	histogram // without its counts
	counts    *hdrhistogram.Snapshot
}

func (t *total) add(h *histogram) {
	t.overflow += h.overflow
	t.largest = max(t.largest, h.largest)
	t.sum += h.sum
	if t.counts != nil && h.TotalCount() == 0 {
		return
	}
	more := h.Export()
	if t.counts == nil {
		t.counts = more
		return
	}
	for i, n := range more.Counts {
		if n != 0 {
			t.counts.Counts[i] += n
		}
	}
}

// all returns the sum. add must have been called at least once.
func (t *total) all() *histogram {
	t.Histogram = hdrhistogram.Import(t.counts)
	return &t.histogram
}

// durations holds the durations that were seen to end, those that were not, and the ages at
// which the observation of a duration began.
type durations struct{ ended, censored, entered *histogram }

func newDurations() durations { return durations{newHistogram(), newHistogram(), newHistogram()} }

// allEnded returns durations that were all seen from beginning to end.
func allEnded(h *histogram) durations { return durations{h, newHistogram(), newHistogram()} }

// record adds a duration that had the given age when its observation began.
func (d durations) record(ns, age int64, ended bool) {
	d.of(ended).record(ns)
	if age > 0 {
		d.entered.record(age)
	}
}

func (d durations) of(ended bool) *histogram {
	if ended {
		return d.ended
	}
	return d.censored
}

func (d durations) observations() results.Observations {
	return results.Observations{Ended: d.ended.Histogram, Censored: d.censored.Histogram, Entered: d.entered.Histogram}
}
