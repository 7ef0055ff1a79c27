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
		want         Outcome
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
		e := expectation{Total: test.total}
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
		outcomes []Outcome
		want     Verdict
	}{
		{nil, Inconclusive},
		{[]Outcome{Held, Held}, Confirmed},
		{[]Outcome{Contradicted, Contradicted}, Refuted},
		{[]Outcome{Held, Contradicted}, Qualified},
		{[]Outcome{Held, Partly}, Qualified},
		{[]Outcome{Contradicted, Partly}, Qualified},
		{[]Outcome{Held, Unclear}, Inconclusive},
		{[]Outcome{Missed, Contradicted}, Refuted},
		{[]Outcome{Held, Missed}, Qualified},
		{[]Outcome{Held, Reported}, Confirmed},
		{[]Outcome{Reported}, Inconclusive},
		{[]Outcome{Contradicted, Unclear}, Inconclusive},
	} {
		if got := conclude(test.outcomes); got != test.want {
			t.Errorf("%v: %s, want %s", test.outcomes, got, test.want)
		}
	}
}
