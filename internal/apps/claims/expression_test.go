package claims

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results"
)

func TestExpressionsAreFiguresRatiosAndDifferences(t *testing.T) {
	t.Parallel()
	values := map[string]results.Figure{
		"a": {Value: 12}, "b": {Value: 4}, "zero": {}, "open": {Value: 30, AtLeast: true},
	}
	look := func(o operand) *results.Figure {
		f, there := values[o.run]
		if !there {
			return nil
		}
		return &f
	}
	for text, want := range map[string]*results.Figure{
		"a.wait_p50":                   {Value: 12},
		"a.wait_p50 / b.wait_p50":      {Value: 3},
		"a.wait_p50 - b.wait_p50":      {Value: 8},
		"open.wait_p50 / b.wait_p50":   {Value: 7.5, AtLeast: true},
		"open.wait_p50 - b.wait_p50":   {Value: 26, AtLeast: true},
		"a.wait_p50 / open.wait_p50":   nil, // it might be anything below
		"a.wait_p50 - open.wait_p50":   nil,
		"a.wait_p50 / zero.wait_p50":   nil,
		"nobody.wait_p50":              nil,
		"a.wait_p50 / nobody.wait_p50": nil,
	} {
		e, err := parseExpression(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := e.in(look)
		if (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
	}
}

func TestExpressionsTellTheirUnit(t *testing.T) {
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
		"a[].wait_p50":                         "not of the form",
		"a.wait_p50 / b.wait_p50 / c.wait_p50": "more than two figures",
		"a.wait_p50 / b.wait_p50 - c.wait_p50": "more than two figures",
		"a.wait_p50 / b.acq_per_s":             "different units",
		"a.nonsense_x / b.more_nonsense":       "more_nonsense",
		"best(a[x, y].wait_p50":                "the ( is not closed",
		"best(a[x,y].wait_p50)":                "not of the form best(RUN[STRATEGY, STRATEGY].METRIC)",
		"best(a.wait_p50)":                     "not of the form best(RUN[STRATEGY, STRATEGY].METRIC)",
		"best(a[x, y].hold_mean)":              "no hold_mean is better than another",
		"best(a[x, y].wait_p5)":                `did you mean "wait_p50"?`,
		"best(a[x, y].wait_p50) / best(a[x, y].wait_p50)": "looks for the best twice",
	} {
		if _, err := parseExpression(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
