package gate

import (
	"math/rand/v2"
	"slices"
	"testing"
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

// resample draws pairs from all trials, with replacement, as often as resamples
// says, and counts how many of these comparisons call the head worse. Equal builds
// may also change places, which makes the null hypothesis true to the letter.
func (ts trials) resample(t *testing.T, swap bool) int {
	t.Helper()
	random := rand.New(rand.NewPCG(uint64(len(ts)), 7))
	worse := 0
	for range resamples {
		var base, head compare.Side
		for range pairs {
			from := ts[random.IntN(len(ts))]
			i := random.IntN(len(from.base.Reports))
			b, h := from.base.Reports[i], from.head.Reports[i]
			if swap && random.IntN(2) == 0 {
				b, h = h, b
			}
			base.Reports, head.Reports = append(base.Reports, b), append(head.Reports, h)
		}
		c, err := compare.Paired(base, head, compare.DefaultRules())
		if err != nil {
			t.Fatal(err)
		}
		if c.Verdict == compare.Worse {
			worse++
		}
	}
	return worse
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
