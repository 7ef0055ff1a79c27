package claims

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results"
)

// planted are rounds of strategies with these speeds and waits per client (p99).
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

func TestExpressionsAreFiguresRatiosAndDifferences(t *testing.T) {
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
		"a / open": nil, // it may be anything below
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

func TestExpressionsHaveAUnit(t *testing.T) {
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

func TestExpressionsNameTheirFaults(t *testing.T) {
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
		"best(a[x, y].hold_mean)":              "no hold_mean is better than another",
		"best(a[x, y].wait_p50) / best(a[x, y].wait_p50)": "looks for the best twice",
	} {
		if _, err := parseExpression(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// The best is that of the round, by the metric's direction.
func TestTheBestOfARound(t *testing.T) {
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
			r.Invalid = []string{"generator saturated"}
		}
	}
	runs := map[string]*measured{"x": m}
	for text, want := range map[string][]struct {
		value float64
		whose string
	}{
		"best(x[a, b].acq_per_s)": {{3, "b"}, {4, "a"}, {2, "a"}},
		// Who waited for at least 3 may have been no worse than that.
		"best(x[a, b].wait_per_client_p99)": {{5, "a"}, {2, "b"}, {3, "a"}},
	} {
		o, err := parseOperand(text)
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			f, whose := o.look(runs, i+1)
			if f == nil || f.Value != w.value || f.AtLeast || whose != w.whose {
				t.Errorf("%s in round %d is %v of %q, want %v of %s", text, i+1, f, whose, w.value, w.whose)
			}
		}
		for round, why := range map[int]string{4: "in which one cannot be trusted", 5: "that was not"} {
			if f, whose := o.look(runs, round); f != nil || whose != "" {
				t.Errorf("%s of a round %s is %v of %q", text, why, f, whose)
			}
		}
	}
}
