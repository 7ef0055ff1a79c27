package results

import (
	"bytes"
	"fmt"
	"io"
	"math"
)

// hgrmLadder are the percentiles of every .hgrm file, as shares: five steps to
// each halving of what is left, as HdrHistogram's own writers have them, down to
// one in ten million. The plotter pairs files by row, so the rows must not depend
// on the data.
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

// HgrmNames are the strategies, of a sweep with their points, for each of which
// WriteHgrm writes a file of its own.
func HgrmNames(r *Report) []string {
	var names []string
	for _, s := range summarise(r) {
		names = append(names, s.title())
	}
	return names
}

// WriteHgrm writes the percentiles of a strategy's waits over all its valid runs
// for HdrHistogram's plotter, in milliseconds. They are Kaplan and Meier's; from
// where they are only lower bounds on, which a comment says, the curve is flat.
func WriteHgrm(w io.Writer, r *Report, name string) error {
	for _, s := range summarise(r) {
		if s.title() == name {
			return writeHgrm(w, s)
		}
	}
	return fmt.Errorf("%s was not measured", name)
}

func writeHgrm(w io.Writer, s summary) error {
	var runs []Distribution
	for _, run := range s.used {
		runs = append(runs, run.Waiting.PerAcquisition)
	}
	waits, _, err := merged(runs)
	if err != nil {
		return err
	}
	longest := longestOf(runs)
	survival := Survival{curve: estimate(waits, longest)}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)")
	const ms = 1e6
	exact := 1.0
	for _, q := range hgrmLadder() {
		value := survival.Quantile(q)
		if value == nil {
			value = &Bound{}
		}
		if value.AtLeast {
			exact = min(exact, q)
		}
		count := int64(math.Round(q * float64(waits.count())))
		if q < 1 {
			fmt.Fprintf(&b, "%12.6f %2.12f %10d %14.2f\n", float64(value.NS)/ms, q, count, 1/(1-q))
		} else {
			fmt.Fprintf(&b, "%12.6f %2.12f %10d\n", float64(value.NS)/ms, q, count)
		}
	}
	most := int64(0)
	if longest != nil {
		most = longest.NS
	}
	fmt.Fprintf(&b, "#[Mean    = %12.6f, StdDeviation   = %12.6f]\n", waits.Ended.Mean()/ms, waits.Ended.StdDev()/ms)
	fmt.Fprintf(&b, "#[Max     = %12.6f, Total count    = %12d]\n", float64(most)/ms, waits.count())
	if exact < 1 {
		fmt.Fprintf(&b, "# from %.12f on these are lower bounds: %d waits had not ended\n", exact, waits.Censored.TotalCount())
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write percentiles: %w", err)
	}
	return nil
}
