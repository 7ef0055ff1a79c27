package render

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// hgrmLadder returns the percentiles of every .hgrm file, as shares from 0 to 1. As in HdrHistogram's own writers, five
// steps halve the distance to 1, down to one in ten million. HdrHistogram's plotter pairs the rows of several files, so
// the percentiles must not depend on the data.
func hgrmLadder() []float64 {
	const steps, finest = 5, 1e-7
	var ladder []float64
	for left := 1.0; left > finest; left /= 2 {
		for i := range steps {
			ladder = append(ladder, 1-left*(1-float64(i)/(2*steps)))
		}
	}
	return append(ladder, 1)
}

// HgrmNames returns the names for which WriteHgrm can write a file: one for each strategy or, in a sweep, for each
// strategy at each point.
func HgrmNames(r *results.Report) []string {
	var names []string
	for _, s := range r.Summaries() {
		names = append(names, s.Title())
	}
	return names
}

// WriteHgrm writes the percentiles of a strategy's waits over all its valid runs, in milliseconds, for HdrHistogram's
// plotter. The percentiles are the product-limit estimate. Where only lower bounds are known the curve is flat, as a
// comment in the file explains. WriteHgrm fails if the strategy was not measured, or if its histograms are missing.
func WriteHgrm(w io.Writer, r *results.Report, name string) error {
	all := r.Summaries()
	at := slices.IndexFunc(all, func(s results.Summary) bool { return s.Title() == name })
	if at < 0 {
		return fmt.Errorf("%s was not measured", name)
	}
	var runs []results.Distribution
	for _, run := range all[at].Used {
		runs = append(runs, run.Waiting.PerAcquisition)
	}
	waits := results.Sum(runs...)
	survival, total := waits.Survival(), waits.Count+waits.Censored
	if total > 0 && !waits.Recorded() {
		return fmt.Errorf("%s has no histogram of its %d waits", name, total)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)")
	const ms = 1e6
	exact := 1.0
	for _, q := range hgrmLadder() {
		value := survival.Quantile(q)
		if value == nil {
			value = &results.Bound{}
		}
		if value.AtLeast {
			exact = min(exact, q)
		}
		count := int64(math.Round(q * float64(total)))
		if q < 1 {
			fmt.Fprintf(&b, "%12.6f %2.12f %10d %14.2f\n", float64(value.NS)/ms, q, count, 1/(1-q))
		} else {
			fmt.Fprintf(&b, "%12.6f %2.12f %10d\n", float64(value.NS)/ms, q, count)
		}
	}
	most := int64(0)
	if waits.Max != nil {
		most = waits.Max.NS
	}
	fmt.Fprintf(&b, "#[Mean    = %12.6f, StdDeviation   = %12.6f]\n", waits.Histogram.Mean()/ms,
		waits.Histogram.StdDev()/ms)
	fmt.Fprintf(&b, "#[Max     = %12.6f, Total count    = %12d]\n", float64(most)/ms, total)
	if exact < 1 {
		fmt.Fprintf(&b, "# from percentile %.12f on the values are lower bounds: %d waits had not ended or had timed out\n",
			exact, waits.Censored)
	}
	return words.Write(w, "percentiles", b.Bytes())
}
