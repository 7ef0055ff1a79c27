package gate

import (
	"slices"
	"time"

	"github.com/lockbench/lockbench/results/compare"
)

// trials are comparisons of the same kind.
type trials []trial

func (ts *trials) add(t trial) { *ts = append(*ts, t) }

// worse counts the comparisons that called the head worse.
func (ts trials) worse() int {
	n := 0
	for _, t := range ts {
		if t.Verdict == compare.Worse {
			n++
		}
	}
	return n
}

// by counts those that called it worse by this metric.
func (ts trials) by(metric string) int {
	n := 0
	for _, t := range ts {
		if worseBy(t.Comparison, metric) {
			n++
		}
	}
	return n
}

func worseBy(c compare.Comparison, metric string) bool {
	return slices.ContainsFunc(c.Strategies[0].Results, func(r compare.Result) bool {
		return r.Metric == metric && r.Verdict == compare.Worse
	})
}

// medianOf is that of a figure of every trial.
func (ts trials) medianOf(figure func(trial) float64) float64 {
	var all []float64
	for _, t := range ts {
		all = append(all, figure(t))
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// slowest is how long the longest of them took.
func (ts trials) slowest() time.Duration {
	longest := time.Duration(0)
	for _, t := range ts {
		longest = max(longest, t.took)
	}
	return longest
}
