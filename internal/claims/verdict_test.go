package claims

import (
	"testing"

	"github.com/lockbench/lockbench/results"
)

func figures(values ...float64) []*results.Figure {
	var all []*results.Figure
	for _, v := range values {
		all = append(all, &results.Figure{Value: v})
	}
	return all
}

func TestWhatTheRoundsOfAFigureComeTo(t *testing.T) {
	t.Parallel()
	open := &results.Figure{Value: 2, AtLeast: true}
	for _, test := range []struct {
		name         string
		is, opposite string
		total        bool
		values       []*results.Figure
		want         results.Outcome
	}{
		{"all hold", ">= 3", "<= 1", false, figures(3, 5, 4), results.Held},
		{"all are against it", ">= 3", "<= 1", false, figures(1, 0.5), results.Contradicted},
		{"all are in the margin", ">= 3", "<= 1", false, figures(2, 2), results.Partly},
		{"some hold, none is against it", ">= 3", "<= 1", false, figures(4, 2), results.Partly},
		{"some are against it, none holds", ">= 3", "<= 1", false, figures(1, 2), results.Partly},
		{"rounds disagree", ">= 3", "<= 1", false, figures(4, 1), results.Unclear},
		{"rounds disagree, one between", ">= 3", "<= 1", false, figures(4, 2, 1), results.Unclear},
		{"without an opposite there is no margin", ">= 3", "", false, figures(2, 2), results.Contradicted},
		{"without an opposite rounds disagree", ">= 3", "", false, figures(2, 3), results.Unclear},
		{"one is not known", ">= 3", "<= 1", false, append(figures(4), nil), results.Unclear},
		{"none there", ">= 3", "<= 1", false, nil, results.Unclear},
		{"a lower bound that suffices", ">= 2", "<= 1", false, []*results.Figure{open}, results.Held},
		{"a lower bound that does not", ">= 3", "<= 1", false, []*results.Figure{open}, results.Unclear},
		{"a lower bound beyond", "<= 1", ">= 2", false, []*results.Figure{open}, results.Contradicted},
		{"a lower bound just beyond", "< 2", "", false, []*results.Figure{open}, results.Contradicted},
		{"a lower bound that may be just it", "<= 2", "", false, []*results.Figure{open}, results.Unclear},
		{"in all enough", ">= 1", "<= 0", true, figures(0, 1, 0), results.Held},
		{"in all not", ">= 1", "<= 0", true, figures(0, 0, 0), results.Contradicted},
		{"in all not known", ">= 1", "<= 0", true, append(figures(1), nil), results.Unclear},
	} {
		e := Expectation{Total: test.total}
		var err error
		if e.Is, err = results.ParseLimit(test.is, results.Number); err != nil {
			t.Fatal(err)
		}
		if test.opposite != "" {
			b, err := results.ParseLimit(test.opposite, results.Number)
			if err != nil {
				t.Fatal(err)
			}
			e.Opposite = &b
		}
		if got := e.settle(test.values); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		outcomes []results.Outcome
		want     results.ClaimVerdict
	}{
		{nil, results.ClaimInconclusive},
		{[]results.Outcome{results.Held, results.Held}, results.Confirmed},
		{[]results.Outcome{results.Contradicted, results.Contradicted}, results.Refuted},
		{[]results.Outcome{results.Held, results.Contradicted}, results.Qualified},
		{[]results.Outcome{results.Held, results.Partly}, results.Qualified},
		{[]results.Outcome{results.Contradicted, results.Partly}, results.Qualified},
		{[]results.Outcome{results.Held, results.Unclear}, results.ClaimInconclusive},
		{[]results.Outcome{results.Missed, results.Contradicted}, results.Refuted},
		{[]results.Outcome{results.Held, results.Missed}, results.Qualified},
		{[]results.Outcome{results.Held, results.Reported}, results.Confirmed},
		{[]results.Outcome{results.Reported}, results.ClaimInconclusive},
		{[]results.Outcome{results.Contradicted, results.Unclear}, results.ClaimInconclusive},
	} {
		if got := conclude(test.outcomes); got != test.want {
			t.Errorf("%v: %s, want %s", test.outcomes, got, test.want)
		}
	}
}
