package claims

import (
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/results"
)

// What must keep a limit instead of every round: the worse end of the interval of the rounds' median, or
// that median.
const (
	byInterval = "interval"
	byMedian   = "median"
)

// confidence is that of the intervals: at most 1 % lies outside either end.
const confidence = 0.98

// newInterval returns the interval of the known rounds; nil if there is none.
func newInterval(values []*results.Figure) *Interval {
	all := known(values)
	if len(all) == 0 {
		return nil
	}
	i := &Interval{Median: *results.MedianFigure(all), Rounds: len(all)}
	sure := false
	if i.Low, i.High, sure = results.FigureInterval(all, confidence); sure {
		i.Confidence = confidence
	}
	return i
}

// known returns the known values.
func known(values []*results.Figure) []results.Figure {
	var all []results.Figure
	for _, v := range values {
		if v != nil {
			all = append(all, *v)
		}
	}
	return all
}

// settleTogether sets the outcome of all rounds together, where settle uses each round. It ignores unknown
// rounds; if too few remain, the outcome is unclear.
func (e expectation) settleTogether(f *FigureResult) {
	f.Judged, f.Interval = e.By, newInterval(f.Values)
	switch {
	case e.Is.Text == "":
		f.Outcome = Reported
	case f.Interval == nil || f.Interval.Confidence == 0:
		f.Outcome = Unclear
	default:
		f.Outcome = Missed
		if kept, known := e.Is.Keeps(e.decisive(f.Interval)); kept && known {
			f.Outcome = Held
		}
	}
}

// decisive returns the figure that must keep the limit.
func (e expectation) decisive(i *Interval) results.Figure {
	switch {
	case e.By == byMedian:
		return i.Median
	case e.Is.Operator == ">" || e.Is.Operator == ">=":
		return i.Low
	}
	return i.High
}

// wrongBy returns an error if the expectation cannot be judged in that way.
func (e expectation) wrongBy() error {
	switch {
	case e.By != byInterval && e.By != byMedian:
		return fmt.Errorf("by is interval or median, not %q", e.By)
	case e.Opposite != nil || e.Total:
		return fmt.Errorf("by %s goes with neither opposite nor total", e.By)
	case e.Is.Text != "" && !slices.Contains([]string{"<", "<=", ">", ">="}, e.Is.Operator):
		return fmt.Errorf("by %s takes <, <=, > or >=, not %q", e.By, e.Is.Text)
	}
	return nil
}

// strict says whether the claim uses every round of a run: then no round may be left out.
func (c Claim) strict(run Run) bool {
	return slices.ContainsFunc(c.expect, func(e expectation) bool {
		return e.By == "" && slices.ContainsFunc(e.Figure.operands, func(o operand) bool { return o.run == run.Name })
	})
}
