package measure

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lockbench/lockbench/results"
)

// histogram is an HDR histogram of nanoseconds that never clamps in silence:
// durations beyond its range count as its top and are counted in overflow.
type histogram struct {
	*hdrhistogram.Histogram
	overflow int64
	largest  int64 // exact
	sum      float64
}

func newHistogram() *histogram {
	return &histogram{Histogram: results.NewHistogram()}
}

func (h *histogram) record(ns int64) {
	h.largest = max(h.largest, ns)
	h.sum += float64(ns)
	if top := h.HighestTrackableValue(); ns > top {
		h.overflow++
		ns = top
	}
	if err := h.RecordValue(max(ns, 0)); err != nil {
		panic(fmt.Sprintf("measure: %d ns does not fit the histogram: %v", ns, err)) // the bounds above rule it out
	}
}

func (h *histogram) merge(other *histogram) {
	h.Merge(other.Histogram)
	h.overflow += other.overflow
	h.largest = max(h.largest, other.largest)
	h.sum += other.sum
}
