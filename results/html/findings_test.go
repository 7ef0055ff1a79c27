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
	b.Tool.Commit = "other"
	a.Runs[0].Invalid, a.Interrupted = []string{"x"}, true
	for _, test := range []struct {
		files []File
		want  string
	}{
		{[]File{{"a.json", a}}, "a: its run cannot be trusted: x. interrupted: 2 of 2 runs measured."},
		{[]File{{"a.json", a}, {"b.json", b}}, "[1] a: its run cannot be trusted: x. a.json: interrupted: 2 of 2 runs measured."},
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
	r.Runs[1].Fairness.Starved = new(3)
	r.Runs[1].Safety.Overlaps = 3
	r.Runs[0].Invalid = []string{"x"}
	var sorts []string
	files := []File{{"r.json", r}}
	for _, f := range found(families(files), files) {
		sorts = append(sorts, string(f.Sort))
	}
	if got := strings.Join(sorts, ", "); got != "not trusted, unsafe, waiting" {
		t.Errorf("the findings are %s", got)
	}
}

// TestSetups: builds and machines are not mixed, ports are.
func TestSetups(t *testing.T) {
	t.Parallel()
	a, b := even(1), even(1)
	b.Redis.Address = "127.0.0.1:7777"
	if got := families([]File{{"a", a}, {"b", b}}); len(got) != 1 || len(got[0].top().cells[0].Runs) != 2 {
		t.Errorf("two sessions of one build make %d families", len(got))
	}
	b.Tool.Commit = "other"
	if got := families([]File{{"a", a}, {"b", b}}); len(got) != 2 {
		t.Errorf("two builds make %d families", len(got))
	}
	b.Tool.Commit = ""
	a.Shared, b.Shared = &results.Shared{Generator: "a"}, &results.Shared{Generator: "b"}
	if got := families([]File{{"a", a}, {"b", b}}); len(got) != 2 {
		t.Errorf("two generators make %d families", len(got))
	}
	a.Shared, b.Shared = nil, nil
	b.Workload.Clients = 7
	b.Workload.Instances = 7
	got := families([]File{{"a", a}, {"b", b}})
	if len(got) != 1 || len(got[0].arenas) != 2 || got[0].arenas[0].workload.Clients != 7 {
		t.Errorf("two numbers of clients make %d families", len(got))
	}
	b.Workload.Keys = 3
	if got := families([]File{{"a", a}, {"b", b}}); len(got) != 2 {
		t.Errorf("two workloads make %d families", len(got))
	}
}
