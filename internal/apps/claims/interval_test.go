package claims

import (
	"context"
	"slices"
	"testing"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
)

const target = `
says: mine is the fastest
rounds: 8
runs: {all: "--strategy spin,pubsub,fair"}
shows: [acq_per_s]
expect:
  - {what: speed, figure: "all[spin].acq_per_s / best(all[pubsub, fair].acq_per_s)", is: ">= 1.2", by: interval}
  - {what: middle, figure: "all[spin].acq_per_s / best(all[pubsub, fair].acq_per_s)", is: ">= 1.2", by: median}
  - {what: alone, figure: "best(all[pubsub, fair].acq_per_s)", by: interval}
`

// The whole way: rounds with planted speeds, the ratio to the best of each, its interval,
// and the verdict by its worse end.
func TestATargetIsJudgedByTheWorseEnd(t *testing.T) {
	t.Parallel()
	others := map[string][]float64{"pubsub": {100, 100, 100, 100, 100, 50, 50, 50}, "fair": {50, 50, 50, 50, 50, 100, 100, 100}}
	for name, test := range map[string]struct {
		spin    []float64
		invalid int // rounds of pubsub, from the first on
		want    []Outcome
		low     float64
		best    []winner
		verdict Verdict
	}{
		"all rounds keep it": {[]float64{120, 130, 140, 150, 160, 170, 180, 190}, 0, []Outcome{Held, Held, Reported}, 1.2,
			[]winner{{"pubsub", 5}, {"fair", 3}}, Confirmed},
		"one does not": {[]float64{110, 130, 140, 150, 160, 170, 180, 190}, 0, []Outcome{Missed, Held, Reported}, 1.1,
			[]winner{{"pubsub", 5}, {"fair", 3}}, Qualified},
		"not even the median": {[]float64{110, 110, 110, 110, 110, 170, 180, 190}, 0, []Outcome{Missed, Missed, Reported}, 1.1,
			[]winner{{"pubsub", 5}, {"fair", 3}}, Refuted},
		// Who was the best is not known where one of them is not.
		"one cannot be trusted": {[]float64{120, 130, 140, 150, 160, 170, 180, 190}, 1, []Outcome{Held, Held, Reported}, 1.3,
			[]winner{{"pubsub", 4}, {"fair", 3}}, Confirmed},
		"too many cannot be trusted": {[]float64{120, 130, 140, 150, 160, 170, 180, 190}, 2, []Outcome{Unclear, Unclear, Reported}, 1.4,
			[]winner{{"fair", 3}, {"pubsub", 3}}, Inconclusive},
	} {
		p := pretend()
		p.bench.Run = func(context.Context, lockbench.Plan) (*results.Report, error) {
			p.lines = append(p.lines, name)
			report := planted(map[string][]float64{"spin": test.spin, "pubsub": others["pubsub"], "fair": others["fair"]}, nil).report
			for i := range report.Runs {
				if r := &report.Runs[i]; r.Strategy == "pubsub" && r.Round <= test.invalid {
					r.Invalid = []string{"generator saturated"}
				}
			}
			return report, nil
		}
		document, err := p.bench.Test(t.Context(), []Claim{claim(t, target)})
		if err != nil || len(p.lines) != 1 {
			t.Fatalf("%s: %v, measured %d times", name, err, len(p.lines))
		}
		c := document.Claims[0]
		var outcomes []Outcome
		for _, f := range c.Figures {
			outcomes = append(outcomes, f.Outcome)
		}
		f := c.Figures[0]
		if !slices.Equal(outcomes, test.want) || c.Verdict != test.verdict || f.Interval.Low.Value != test.low || f.Interval.Rounds != 8-test.invalid {
			t.Errorf("%s: %s, %v, %+v, %q", name, c.Verdict, outcomes, f.Interval, c.Why)
		}
		if best := f.winners(); !slices.Equal(best, test.best) {
			t.Errorf("%s: the best were %v", name, best)
		}
		if s := c.Runs[0].Shown; s.Runs != 24 || s.LeftOut != test.invalid || len(s.Strategies) != 3 || len(document.Invalid()) > 0 {
			t.Errorf("%s: it shows %+v, invalid are %q", name, s, document.Invalid())
		}
	}
}

func TestTooFewRoundsProveNothing(t *testing.T) {
	t.Parallel()
	p := pretend() // two rounds, of which the claim has eight
	document, err := p.bench.Test(t.Context(), []Claim{claim(t, target)})
	c := document.Claims[0]
	if err != nil || c.Verdict != Inconclusive || c.Figures[0].Outcome != Unclear || c.Figures[0].Interval.Rounds != 2 {
		t.Errorf("%v, %s, %q, %+v", err, c.Verdict, c.Why, c.Figures)
	}
}

// What is only known from below may be anything above.
func TestALowerBoundMissesALimitFromAbove(t *testing.T) {
	t.Parallel()
	values := figures(1, 2, 3, 4, 5, 6)
	open := &results.Figure{Value: 0.5, AtLeast: true}
	for by, want := range map[string]Outcome{byInterval: Missed, byMedian: Missed} {
		e := expectation{By: by, Is: results.Limit{Operator: "<=", Value: 9, Text: "<= 9"}}
		f := FigureResult{Values: append(slices.Clone(values), figures(9)...)}
		if e.settleTogether(&f); f.Outcome != Held {
			t.Errorf("by %s it is %s, all known", by, f.Outcome)
		}
		f = FigureResult{Values: append(slices.Clone(values), open)}
		if e.settleTogether(&f); f.Outcome != want || !f.Interval.High.AtLeast {
			t.Errorf("by %s it is %s, want %s: %+v", by, f.Outcome, want, f.Interval)
		}
	}
	e := expectation{By: byInterval, Is: results.Limit{Operator: ">=", Value: 1, Text: ">= 1"}}
	f := FigureResult{Values: append(slices.Clone(values), &results.Figure{Value: 3, AtLeast: true})}
	if e.settleTogether(&f); f.Outcome != Held {
		t.Errorf("a lower bound above the limit keeps it, and it is %s", f.Outcome)
	}
}
