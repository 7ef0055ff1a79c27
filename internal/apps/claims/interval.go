package claims

import (
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/results"
)

// What is to keep a limit in place of every round: the interval in which the median of
// the rounds lies, by its worse end, or that median.
const (
	byInterval = "interval"
	byMedian   = "median"
)

// confidence is that of the intervals: at most 1 % lies beyond either end.
const confidence = 0.98

// newInterval is that of the rounds that are known; nil if none is.
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

// known are the values of the rounds in which there is one.
func known(values []*results.Figure) []results.Figure {
	var all []results.Figure
	for _, v := range values {
		if v != nil {
			all = append(all, *v)
		}
	}
	return all
}

// settleTogether fills in what the rounds' values come to together, where settle says it
// of each. Rounds that are not known are left out; with too few others it is unclear.
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

// decisive is what is to keep the limit.
func (e expectation) decisive(i *Interval) results.Figure {
	switch {
	case e.By == byMedian:
		return i.Median
	case e.Is.Operator == ">" || e.Is.Operator == ">=":
		return i.Low
	}
	return i.High
}

// wrongBy is what speaks against judging the expectation that way.
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

// strict says whether the claim is of every round of a run: then none of it may be left
// out.
func (c Claim) strict(run Run) bool {
	return slices.ContainsFunc(c.expect, func(e expectation) bool {
		return e.By == "" && slices.ContainsFunc(e.Figure.operands, func(o operand) bool { return o.run == run.Name })
	})
}
