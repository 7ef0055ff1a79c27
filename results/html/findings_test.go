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
		{
			[]File{{"a.json", a}, {"b.json", b}},
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

// TestSetups: builds, generators and workloads are not mixed; ports, seeds and numbers of clients are.
func TestSetups(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name            string
		change          func(a, b *results.Report)
		families, runs  int
		arenas, clients int // of the first family; the clients of its first arena
	}{
		{"ports", func(_, b *results.Report) { b.Redis.Address = "127.0.0.1:7777" }, 1, 2, 1, 100},
		{"builds", func(_, b *results.Report) { b.Tool.Commit = "other" }, 2, 1, 1, 100},
		{"generators", func(a, b *results.Report) {
			a.Shared, b.Shared = &results.Shared{Generator: "a"}, &results.Shared{Generator: "b"}
		}, 2, 1, 1, 100},
		{"clients", func(_, b *results.Report) { b.Workload.Clients, b.Workload.Instances = 7, 7 }, 1, 1, 2, 7},
		{"workloads", func(_, b *results.Report) { b.Workload.Keys = 3 }, 2, 1, 1, 100},
	} {
		a, b := even(1), even(1)
		test.change(a, b)
		got := families([]File{{"a", a}, {"b", b}})
		if len(got) != test.families || len(got[0].arenas) != test.arenas ||
			got[0].arenas[0].workload.Clients != test.clients || len(got[0].top().cells[0].Runs) != test.runs {
			t.Errorf("two sessions with other %s make %d families of %d arenas", test.name, len(got),
				len(got[0].arenas))
		}
	}
}
