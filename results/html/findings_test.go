package html

import (
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// even is a report of two locks, a and b, of which there is nothing to say.
func even(rounds int) *results.Report {
	w := workloads.Default()
	w.Clients, w.Hold = 100, workloads.Fixed(time.Millisecond)
	r := &results.Report{Workload: w, Rounds: rounds}
	for _, name := range []string{"a", "b"} {
		r.Strategies = append(r.Strategies, results.Strategy{Name: name})
		for round := range rounds {
			r.Runs = append(r.Runs, results.Run{Strategy: name, Round: round + 1, WindowNS: 5e9})
		}
	}
	return r
}

// TestFindingsBearWhereTheyAreFrom: the number of their section, the name of their file.
func TestFindingsBearWhereTheyAreFrom(t *testing.T) {
	t.Parallel()
	a, b := even(1), even(1)
	a.Runs[0].Invalid, a.Interrupted = []string{"x"}, true
	for _, test := range []struct {
		files []results.File
		want  string
	}{
		{[]results.File{{Name: "a.json", Report: a}}, "a: its run cannot be trusted: x. interrupted: 2 of 2 runs measured."},
		{
			[]results.File{{Name: "a.json", Report: a}, {Name: "b.json", Report: b}},
			"[1] a: its run cannot be trusted: x. a.json: interrupted: 2 of 2 runs measured.",
		},
	} {
		var texts []string
		for _, f := range found(families(test.files), test.files) {
			texts = append(texts, f.Text)
		}
		if got := strings.Join(texts, " "); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// TestOrder has what cannot be trusted come first.
func TestOrder(t *testing.T) {
	t.Parallel()
	r := even(1)
	r.Runs[1].Labels = []string{results.Overloaded + "900/s"}
	r.Runs[1].Safety.Overlaps = 3
	r.Runs[0].Invalid = []string{"x"}
	var sorts []string
	files := []results.File{{Name: "r.json", Report: r}}
	for _, f := range found(families(files), files) {
		sorts = append(sorts, string(f.Sort))
	}
	if got := strings.Join(sorts, ", "); got != "not trusted, unsafe, waiting" {
		t.Errorf("the findings are %s", got)
	}
}

// TestFamilies: numbers of clients make a family, other workloads and files one of their own.
func TestFamilies(t *testing.T) {
	t.Parallel()
	w := even(1).Workload
	fewer, other := w, w
	fewer.Clients, fewer.Instances, other.Keys = 7, 7, 3
	swept := even(1)
	for _, w := range []workloads.Spec{w, fewer, other} {
		swept.Points = append(swept.Points, workloads.Point{Label: w.Describe(), Workload: w})
	}
	swept.Runs = nil
	for _, p := range swept.Points {
		for _, run := range even(1).Runs {
			run.Point = p.Label
			swept.Runs = append(swept.Runs, run)
		}
	}
	all := families([]results.File{{Name: "a", Report: swept}, {Name: "b", Report: even(2)}})
	if len(all) != 3 || len(all[0].arenas) != 2 || all[0].arenas[0].workload.Clients != 7 ||
		all[1].top().workload.Keys != 3 || len(all[2].top().cells[0].Runs) != 2 {
		t.Errorf("there are %d families", len(all))
	}
}
