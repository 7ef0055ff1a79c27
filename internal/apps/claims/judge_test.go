package claims

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
)

func figures(values ...float64) []*results.Figure {
	var all []*results.Figure
	for _, v := range values {
		all = append(all, &results.Figure{Value: v})
	}
	return all
}

func expected(t *testing.T, is, opposite string) expectation {
	t.Helper()
	e := expectation{What: "x", Limits: Limits{Is: Text(is), Opposite: Text(opposite)}}
	e.Figure, _ = parseExpression("a.attempts_per_acq") // its unit is a plain number
	if err := e.check(); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestFigureVerdicts(t *testing.T) {
	t.Parallel()
	open := &results.Figure{Value: 2, AtLeast: true}
	for _, test := range []struct {
		name         string
		is, opposite string
		total        bool
		values       []*results.Figure
		want         results.Verdict
	}{
		{"all hold", ">= 3", "<= 1", false, figures(3, 5, 4), Held},
		{"all are against it", ">= 3", "<= 1", false, figures(1, 0.5), Contradicted},
		{"all are in the margin", ">= 3", "<= 1", false, figures(2, 2), Partly},
		{"some hold, none is against it", ">= 3", "<= 1", false, figures(4, 2), Partly},
		{"some are against it, none holds", ">= 3", "<= 1", false, figures(1, 2), Partly},
		{"rounds disagree", ">= 3", "<= 1", false, figures(4, 1), Unclear},
		{"rounds disagree, one between", ">= 3", "<= 1", false, figures(4, 2, 1), Unclear},
		{"without an opposite there is no margin", ">= 3", "", false, figures(2, 2), Contradicted},
		{"without an opposite rounds disagree", ">= 3", "", false, figures(2, 3), Unclear},
		{"one is not known", ">= 3", "<= 1", false, append(figures(4), nil), Unclear},
		{"none there", ">= 3", "<= 1", false, nil, Unclear},
		{"a lower bound that suffices", ">= 2", "<= 1", false, []*results.Figure{open}, Held},
		{"a lower bound that does not", ">= 3", "<= 1", false, []*results.Figure{open}, Unclear},
		{"a lower bound beyond", "<= 1", ">= 2", false, []*results.Figure{open}, Contradicted},
		{"a lower bound just beyond", "< 2", "", false, []*results.Figure{open}, Contradicted},
		{"a lower bound that may be just it", "<= 2", "", false, []*results.Figure{open}, Unclear},
		{"in all enough", ">= 1", "<= 0", true, figures(0, 1, 0), Held},
		{"in all not", ">= 1", "<= 0", true, figures(0, 0, 0), Contradicted},
		{"in all not known", ">= 1", "<= 0", true, append(figures(1), nil), Unclear},
	} {
		e := expected(t, test.is, test.opposite)
		e.Total = test.total
		f := FigureResult{Values: test.values}
		if e.settle(&f); f.Verdict != test.want {
			t.Errorf("%s: %s, want %s", test.name, f.Verdict, test.want)
		}
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		outcomes []results.Verdict
		want     results.Verdict
	}{
		{nil, Inconclusive},
		{[]results.Verdict{Held, Held}, Confirmed},
		{[]results.Verdict{Contradicted, Contradicted}, Refuted},
		{[]results.Verdict{Held, Contradicted}, Qualified},
		{[]results.Verdict{Held, Partly}, Qualified},
		{[]results.Verdict{Contradicted, Partly}, Qualified},
		{[]results.Verdict{Held, Unclear}, Inconclusive},
		{[]results.Verdict{Missed, Contradicted}, Refuted},
		{[]results.Verdict{Held, Missed}, Qualified},
		{[]results.Verdict{Held, Reported}, Confirmed},
		{[]results.Verdict{Reported}, Inconclusive},
		{[]results.Verdict{Contradicted, Unclear}, Inconclusive},
	} {
		if got := conclude(test.outcomes); got != test.want {
			t.Errorf("%v: %s, want %s", test.outcomes, got, test.want)
		}
	}
}

const target = `
says: mine is the fastest
rounds: 8
runs: {a: "--strategy spin,pubsub,fair"}
shows: [acq_per_s]
expect:
  - {what: speed, figure: "a[spin].acq_per_s / best(a[pubsub, fair].acq_per_s)", is: ">= 1.2", by: interval}
  - {what: middle, figure: "a[spin].acq_per_s / best(a[pubsub, fair].acq_per_s)", is: ">= 1.2", by: median}
  - {what: alone, figure: "best(a[pubsub, fair].acq_per_s)", by: interval}
`

// TestTargetIsJudgedByWorseEnd covers all steps: rounds with planted speeds, the ratio to the best strategy of each
// round, its interval, and the verdict by the worse end of the interval.
func TestTargetIsJudgedByWorseEnd(t *testing.T) {
	t.Parallel()
	others := map[string][]float64{
		"pubsub": {100, 100, 100, 100, 100, 50, 50, 50}, "fair": {50, 50, 50, 50, 50, 100, 100, 100},
	}
	const unsure = Inconclusive
	spin := func(first ...float64) []float64 {
		return append(first, []float64{120, 130, 140, 150, 160, 170, 180, 190}[len(first):]...)
	}
	for name, test := range map[string]struct {
		spin    []float64
		invalid int // number of invalid rounds of pubsub, from the first on
		want    []results.Verdict
		low     float64
		best    string
		verdict results.Verdict
	}{
		"all keep it":  {spin(), 0, []results.Verdict{Held, Held, Reported}, 1.2, "pubsub (5), fair (3)", Confirmed},
		"one does not": {spin(110), 0, []results.Verdict{Missed, Held, Reported}, 1.1, "pubsub (5), fair (3)", Qualified},
		"not even the median": {
			spin(110, 110, 110, 110, 110), 0, []results.Verdict{Missed, Missed, Reported}, 1.1, "pubsub (5), fair (3)", Refuted,
		},
		// In a round with an invalid run, the best strategy is not known, so the round does not count.
		"one is invalid":  {spin(), 1, []results.Verdict{Held, Held, Reported}, 1.3, "pubsub (4), fair (3)", Confirmed},
		"two are invalid": {spin(), 2, []results.Verdict{Unclear, Unclear, Reported}, 1.4, "fair (3), pubsub (3)", unsure},
	} {
		p := pretend()
		p.bench.Run = func(context.Context, lockbench.Plan) (*results.Report, error) {
			p.lines = append(p.lines, name)
			others["spin"] = test.spin
			report := planted(others, nil).report
			for i := range report.Runs {
				if r := &report.Runs[i]; r.Strategy == "pubsub" && r.Round <= test.invalid {
					r.Invalid = results.PlainTexts("generator saturated")
				}
			}
			return report, nil
		}
		document, err := p.bench.Test(t.Context(), []Claim{claim(t, target)})
		if err != nil || len(p.lines) != 1 {
			t.Fatalf("%s: %v, measured %d times", name, err, len(p.lines))
		}
		c := document.Claims[0]
		var outcomes []results.Verdict
		for _, f := range c.Figures {
			outcomes = append(outcomes, f.Verdict)
		}
		f := c.Figures[0]
		if !slices.Equal(outcomes, test.want) || c.Verdict != test.verdict ||
			f.Interval.Low.Value != test.low || f.Interval.Rounds != 8-test.invalid {
			t.Errorf("%s: %s, %v, %+v, %q", name, c.Verdict, outcomes, f.Interval, c.Why)
		}
		if best := f.winners(); best != test.best {
			t.Errorf("%s: the best were %s", name, best)
		}
		s := c.Runs[0].Shown
		if s.Runs != 24 || s.LeftOut != test.invalid || len(s.Strategies) != 3 || len(document.Invalid()) > 0 {
			t.Errorf("%s: it shows %+v, invalid are %q", name, s, document.Invalid())
		}
	}
}

// The figure has an upper limit, and one of its values is only a lower bound. The figure must miss the limit, because
// the true value may exceed the limit.
func TestLowerBoundMissesUpperLimit(t *testing.T) {
	t.Parallel()
	values := figures(1, 2, 3, 4, 5, 6)
	open := &results.Figure{Value: 0.5, AtLeast: true}
	for _, by := range []Text{byInterval, byMedian} {
		e := expected(t, "<= 9", "")
		e.By = by
		f := FigureResult{Values: append(slices.Clone(values), figures(9)...)}
		if e.settle(&f); f.Verdict != Held {
			t.Errorf("by %s it is %s, all known", by, f.Verdict)
		}
		f = FigureResult{Values: append(slices.Clone(values), open)}
		if e.settle(&f); f.Verdict != Missed || !f.Interval.High.AtLeast {
			t.Errorf("by %s it is %s: %+v", by, f.Verdict, f.Interval)
		}
	}
	e := expected(t, ">= 1", "")
	e.By = byInterval
	f := FigureResult{Values: append(slices.Clone(values), &results.Figure{Value: 3, AtLeast: true})}
	if e.settle(&f); f.Verdict != Held {
		t.Errorf("a lower bound above the limit keeps it, and it is %s", f.Verdict)
	}
}

// planted returns a measurement with the given speeds and p99 waits per client. Each list contains the values of one
// strategy, one for each round.
func planted(speeds map[string][]float64, waits map[string][]results.Bound) *measured {
	m := &measured{report: &results.Report{}}
	for name, rounds := range speeds {
		for i, speed := range rounds {
			run := results.Run{Strategy: name, Round: i + 1}
			run.Speed.PerSecond = speed
			if bounds := waits[name]; bounds != nil {
				run.Waiting.PerClient.P99 = &bounds[i]
			}
			m.report.Runs = append(m.report.Runs, run)
		}
	}
	return m
}

func TestExpressionValues(t *testing.T) {
	t.Parallel()
	runs := map[string]*measured{}
	for name, wait := range map[string]results.Bound{
		"a": {NS: 12}, "b": {NS: 4}, "zero": {}, "open": {NS: 30, AtLeast: true},
	} {
		runs[name] = planted(map[string][]float64{"spin": {1}}, map[string][]results.Bound{"spin": {wait}})
	}
	const wait = ".wait_per_client_p99"
	for text, want := range map[string]*results.Figure{
		"a":        {Value: 12},
		"a / b":    {Value: 3},
		"a - b":    {Value: 8},
		"open / b": {Value: 7.5, AtLeast: true},
		"open - b": {Value: 26, AtLeast: true},
		"a / open": nil, // it has no lower bound
		"a - open": nil,
		"a / zero": nil,
		"none":     nil,
		"a / none": nil,
	} {
		text = strings.NewReplacer(" /", wait+" /", " -", wait+" -").Replace(text) + wait
		e, err := parseExpression(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, _ := e.in(runs, 1); (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
	}
}

func TestExpressionUnits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]results.Unit{
		"a.wait_p50":                                 results.Nanoseconds,
		"a[spin:backoff=none].wait_p50":              results.Nanoseconds,
		"a[spin clients=10].utilisation":             results.Percent,
		"a[x].wait_p50 - a[y].wait_p99":              results.Nanoseconds,
		"a[x].redis_cpu_per_acq / b.wait_p50":        results.Number,
		"best(a[x, y].redis_cpu_per_acq)":            results.Nanoseconds,
		"a[x].acq_per_s / best(a[y, z].acq_per_s)":   results.Number,
		"a[x].commands_per_acq / b.attempts_per_acq": results.Number,
	} {
		if e, err := parseExpression(text); err != nil || e.unit != want {
			t.Errorf("%s is in %q, want %q (%v)", text, e.unit, want, err)
		}
	}
}

func TestExpressionErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                     "not of the form",
		"wait_p50":                             "not of the form",
		"a.wait_p5":                            `did you mean "wait_p50"?`,
		"a[.wait_p50":                          "not of the form",
		"a.wait_p50 / b.wait_p50 / c.wait_p50": "more than two figures",
		"a.wait_p50 / b.wait_p50 - c.wait_p50": "not of the form",
		"a.wait_p50 / b.acq_per_s":             "different units",
		"best(a[x, y].wait_p50":                "not of the form",
		"best(a[x,y].wait_p50)":                "or best(RUN[STRATEGY, STRATEGY].METRIC)",
		"best(a[x, y].hold_mean)":              "best does not apply to hold_mean",
		"best(a[x, y].wait_p50) / best(a[x, y].wait_p50)": `uses "best" twice; only one operand may be "best"`,
	} {
		if _, err := parseExpression(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// The best strategy of a round must be the strategy with the highest or with the lowest figure, depending on the
// metric.
func TestBestStrategyOfRound(t *testing.T) {
	t.Parallel()
	exactly := func(ns int64) results.Bound { return results.Bound{NS: ns} }
	least := func(ns int64) results.Bound { return results.Bound{NS: ns, AtLeast: true} }
	m := planted(
		map[string][]float64{"mine": {9, 9, 9, 9}, "a": {1, 4, 2, 3}, "b": {3, 2, 2, 8}},
		map[string][]results.Bound{
			"a": {exactly(5), exactly(5), least(3), exactly(7)}, "b": {exactly(6), exactly(2), exactly(4), exactly(1)},
		},
	)
	for i := range m.report.Runs {
		if r := &m.report.Runs[i]; r.Strategy == "b" && r.Round == 4 {
			r.Invalid = results.PlainTexts("generator saturated")
		}
	}
	runs := map[string]*measured{"x": m}
	for text, want := range map[string][]struct {
		value float64
		whose string
	}{
		"best(x[a, b].acq_per_s)": {{3, "b"}, {4, "a"}, {2, "a"}},
		// A wait of at least 3 counts as 3, which is its best possible value.
		"best(x[a, b].wait_per_client_p99)": {{5, "a"}, {2, "b"}, {3, "a"}},
	} {
		o, err := parseOperand(text)
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			f, whose := o.bestFigure(runs, i+1)
			if f == nil || f.Value != w.value || f.AtLeast || whose != w.whose {
				t.Errorf("%s in round %d is %v of %q, want %v of %s", text, i+1, f, whose, w.value, w.whose)
			}
		}
		for round, why := range map[int]string{4: "in which one cannot be trusted", 5: "that was not"} {
			if f, whose := o.bestFigure(runs, round); f != nil || whose != "" {
				t.Errorf("%s of a round %s is %v of %q", text, why, f, whose)
			}
		}
	}
}
