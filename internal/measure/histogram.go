package measure

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Durations are recorded from 1 ns to 1 h with three significant digits: the
// error of a value read back is below 0.1 %. Longer ones count as 1 h and are
// counted in overflow.
const (
	longest = int64(3_600_000_000_000)
	digits  = 3
)

// histogram is an HDR histogram of nanoseconds that never clamps in silence.
type histogram struct {
	*hdrhistogram.Histogram
	overflow int64
	largest  int64 // exact
	sum      float64
}

func newHistogram() *histogram {
	return &histogram{Histogram: hdrhistogram.New(1, longest, digits)}
}

func (h *histogram) record(ns int64) {
	h.largest = max(h.largest, ns)
	h.sum += float64(ns)
	if ns > longest {
		h.overflow++
		ns = longest
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

// bins lists the histogram's filled buckets by their upper edge, ascending.
func (h *histogram) bins() []bin {
	var bins []bin
	for _, bar := range h.Distribution() {
		if bar.Count > 0 {
			bins = append(bins, bin{min(bar.To, h.largest), float64(bar.Count)})
		}
	}
	return bins
}
