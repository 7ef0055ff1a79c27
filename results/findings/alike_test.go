package findings

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results"
)

// notes are the findings under a word, in order.
func notes(all []results.Summary, word string) []string {
	var texts []string
	for _, f := range Of(all) {
		if f.Note == word {
			texts = append(texts, f.String())
		}
	}
	return texts
}

func TestLabelsThatDifferInTheirFiguresAreSaidOnce(t *testing.T) {
	t.Parallel()
	of := func(name, point string, labels ...string) results.Summary {
		return results.Summary{
			Strategy: results.Strategy{Name: name}, Point: point,
			Runs: []results.Run{{Labels: labels}},
		}
	}
	all := []results.Summary{
		of("a:base=5ms", "c=1", "other CPU 23%", "redis-bound"), of("a:base=5ms", "c=2", "other CPU 9.5%"),
		of("b", "c=1", "other CPU 41%", "steal 3.1%"), of("b", "c=2"),
	}
	for i := range all {
		all[i].Workload.Clients = i
	}
	want := []string{
		"a:base=5ms, b c=1: other CPU 9.5–41% (of all cores, by neither lockbench nor Redis: measure on a quieter " +
			"machine)",
		"b c=1: steal 3.1% (of all cores, by other machines on the same hardware)",
		"a:base=5ms c=1: redis-bound (the thread that executes commands was busy all the time)",
	}
	if got := notes(all, "label"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Of each of two strategies the figure of two rounds is a range already.
func TestRangesOfFiguresBecomeOne(t *testing.T) {
	t.Parallel()
	var all []results.Summary
	for name, labels := range map[string][]string{"a": {"steal 63%", "steal 82%"}, "b": {"steal 67%", "steal 81%"}} {
		s := results.Summary{Strategy: results.Strategy{Name: name}}
		for _, label := range labels {
			s.Runs = append(s.Runs, results.Run{Labels: []string{label}})
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b results.Summary) int { return strings.Compare(a.Name, b.Name) })
	want := []string{"a, b: steal 63–82% (of all cores, by other machines on the same hardware)"}
	if got := notes(all, "label"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestFiguresOfStrategiesStayApart: of one they are put together, of several they are not.
func TestFiguresOfStrategiesStayApart(t *testing.T) {
	t.Parallel()
	of := func(name, point string, n int64) results.Summary {
		run := results.Run{Safety: results.Safety{LeftoverCount: &n}}
		return results.Summary{Strategy: results.Strategy{Name: name}, Point: point, Runs: []results.Run{run}}
	}
	all := []results.Summary{of("a", "c=1", 2), of("a", "c=2", 9), of("b", "c=1", 3), of("b", "c=2", 0)}
	want := []string{
		"a: left 2–9 keys, channels or connections on Redis that it does not declare",
		"b c=1: left 3 keys, channels or connections on Redis that it does not declare",
	}
	if got := notes(all, "left"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestUnequalHoldsAreSaid(t *testing.T) {
	t.Parallel()
	of := func(name string, keys int, holds ...float64) results.Summary {
		s := results.Summary{Strategy: results.Strategy{Name: name}}
		s.Workload.Keys = keys
		for _, ns := range holds {
			s.Used = append(s.Used, results.Run{Speed: results.Speed{Hold: results.Distribution{MeanNS: &ns}}})
		}
		return s
	}
	for _, test := range []struct {
		name string
		all  []results.Summary
		want []string
	}{
		{"none known", []results.Summary{{}}, nil},
		{"3 % apart", []results.Summary{of("a", 1, 1e6), of("b", 1, 1.029e6)}, nil},
		{
			"further apart, by the median",
			[]results.Summary{
				of("a", 1, 1e6, 1e6, 9e6), of("b", 1, 1.5e6),
				of("c", 1, 1.2e6),
			},
			[]string{"mean holds differ by over 3 % (b 1.50 ms, a 1.00 ms): compare the gap, not acq/s"},
		},
		{"workloads are not compared", []results.Summary{of("a", 1, 1e6), of("a", 2, 2e6)}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := notes(test.all, "holds"); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
