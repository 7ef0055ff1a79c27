package html

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// even returns a report of two locks, a and b. Its runs have no figures and cause no findings.
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

// TestPageFindings checks that findings about untrusted runs come first. If the page has several sections, each finding
// must name its section. If it has several files, a finding about a whole file must name the file.
func TestPageFindings(t *testing.T) {
	t.Parallel()
	a, b, bad := even(1), even(1), even(1)
	a.Runs[0].Invalid, a.Interrupted = results.PlainTexts("x"), true
	bad.Runs[1].Safety.Overlaps = 3
	bad.Runs[1].Labels = results.Remarks{results.Overloaded.Remark(workloads.Rate(900), 100)}
	bad.Runs[0].Invalid = results.PlainTexts("x")
	gaveUp := even(1)
	gaveUp.Workload.Timeout = new(workloads.Duration(0))
	gaveUp.Runs[1].Waiting.TimedOut = 3
	const untrusted = "not trusted: "
	for _, test := range []struct {
		files []results.File
		want  []string
	}{
		{
			[]results.File{{Name: "a.json", Report: a}},
			[]string{untrusted + "a: its run cannot be trusted: x.", untrusted + "interrupted: 2 of 2 runs measured."},
		},
		{
			[]results.File{{Name: "a.json", Report: a}, {Name: "b.json", Report: b}},
			[]string{
				untrusted + "[1] a: its run cannot be trusted: x.",
				untrusted + "a.json: interrupted: 2 of 2 runs measured.",
			},
		},
		{
			[]results.File{{Name: "bad.json", Report: bad}},
			[]string{
				untrusted + "a: its run cannot be trusted: x.",
				"unsafe: b: granted the lock to too many clients at once 3 times.",
				"waiting: b: overloaded: at 900/s too many arrivals found all 100 clients waiting.",
			},
		},
		{
			[]results.File{{Name: "tries.json", Report: gaveUp}},
			[]string{"waiting: waits ended without a lease at --timeout 0s: b 100 %."},
		},
	} {
		var got []string
		for _, f := range found(families(test.files), test.files) {
			got = append(got, string(f.Sort)+": "+f.Text)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("-want +got: %s", diff)
		}
	}
}

// TestFamilies checks that workloads form one family only if they are in the same file and differ only in the number of
// clients.
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

// TestPace checks that the note on the throughput chart mentions the gap only if the gap of every strategy is known.
func TestPace(t *testing.T) {
	t.Parallel()
	const lower = "Longer holds lower the throughput"
	for want, change := range map[string]func(*results.Report){
		lower + ".": func(r *results.Report) { r.Runs[0].Speed.Gap = new(1e5) },
		lower + ": where the mean holds differ, compare the gap.": func(r *results.Report) {
			r.Runs[0].Speed.Gap, r.Runs[1].Speed.Gap = new(1e5), new(2e5)
		},
		"": func(r *results.Report) { r.Workload.Burst = workloads.Duration(time.Second) },
	} {
		r := even(1)
		change(r)
		if got := families([]results.File{{Report: r}})[0].pace(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
