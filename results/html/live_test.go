package html

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results"
)

// under marks the last run of r as in progress, and returns the live state at that time.
func under(r *results.Report) Live {
	run := &r.Runs[len(r.Runs)-1]
	run.Partial, run.WindowNS = true, 2e9
	return Live{
		Now: Progress{
			Run: len(r.Runs), Runs: len(r.Asked()) * r.Rounds, Title: run.Title(), Round: run.Round, Phase: "measure",
		},
		Report: r,
	}
}

// cut removes runs from the end of r until only the given number of runs is left. It returns r.
func cut(r *results.Report, runs int) *results.Report {
	r.Runs = r.Runs[:runs]
	return r
}

func TestLivePageListsRunsWithState(t *testing.T) {
	t.Parallel()
	r := synthetic([]string{"spin", "pubsub", "handoff", "blpop"}, []int{10}, 2)
	byRound := func(a, b results.Run) int { return a.Round - b.Round }
	slices.SortStableFunc(r.Runs, byRound)
	r = cut(r, 6)
	r.Runs[1].Invalid = results.PlainTexts("why")
	r.LeftOut = []results.LeftOut{{Strategy: "blpop"}}
	l := under(r)
	speed := func(i int) string { return results.PerSecond.Format(r.Runs[i].Speed.PerSecond) }
	want := [][]string{
		{"spin", "done, " + speed(0), "done, " + speed(4)},
		{"pubsub", "done, " + speed(1) + ", not trusted", "running"},
		{"handoff", "done, " + speed(2), "pending"},
		{"blpop", "done, " + speed(3), "left out"},
	}
	if got := l.Runs(); fmt.Sprint(got.Rows) != fmt.Sprint(want) || len(got.Head) != 3 {
		t.Errorf("the runs are %q, not %q", got.Rows, want)
	}
	l.Now.Title, l.Now.Phase = "handoff", "warm-up" // the report has not got the next run yet
	r.Runs[5].Partial = false
	if got := l.Runs().Rows; got[1][2] != "done, "+speed(5) || got[2][2] != "running" {
		t.Errorf("in the warm-up of the next run the runs are %q", got)
	}
}

// Behind the current run, the charts must show ghosts: the last complete run of each strategy under the same workload.
// Each ghost must have the colour of its strategy.
func TestGhostsAreLastRunsOfSameWorkload(t *testing.T) {
	t.Parallel()
	r := synthetic([]string{"spin", "pubsub", "handoff"}, []int{10, 50}, 2)
	slices.SortStableFunc(r.Runs, func(a, b results.Run) int { return a.Round - b.Round })
	r = cut(r, 11) // handoff has run with 10 clients in the second round, and not yet with 50
	r.Runs[6].Invalid = results.PlainTexts("why")
	long := r.Runs[8].Timeline[0]
	for second := range 1000 {
		long.At = float64(second)
		r.Runs[8].Timeline = append(r.Runs[8].Timeline[:second:second], long)
	}
	l := under(r)
	shown := l.Shown()
	var got []string
	for _, c := range shown {
		got = append(got, fmt.Sprintf("%s %d %v", c.Name, c.style, c.ghost))
	}
	want := []string{
		"handoff clients=10, round 2 (this run) 2 false", "pubsub clients=10, round 2 1 true",
		"handoff clients=10, round 1 2 true", "spin clients=10, round 1 0 true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("shown are %q", got)
	}
	between := l
	between.Now.Title = "spin clients=10" // the next run has begun, and has no figures yet
	r.Runs[10].Partial = false
	for i, c := range between.Shown() {
		if c.Name != "handoff clients=10, round 2" && i == 0 || !c.ghost {
			t.Errorf("between two runs line %d is %s, a ghost: %v", i, c.Name, c.ghost)
		}
	}
	charts := l.Seconds(shown)
	if len(charts) < 3 {
		t.Fatalf("%d charts", len(charts))
	}
	for _, c := range charts {
		for i, curve := range c.curves {
			if last := i == len(c.curves)-1; curve.ghost == last || curve.ghost && len(curve.line) > 160 {
				t.Errorf("%s: line %d is a ghost: %v, of %d points", c.Title, i, curve.ghost, len(curve.line))
			}
		}
	}
	if n := len(charts[0].curves[2].line); n != ghostPoints { // pubsub
		t.Errorf("a ghost of 1000 seconds has %d points", n)
	}
}

// A report has 40 strategies. The charts must show at most mostGhosts ghosts, so that the size of a frame is limited.
func TestGhostsAreBounded(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprint("lock", i))
	}
	l := under(synthetic(names, []int{10}, 1))
	if got := l.Shown(); len(got) != 1+mostGhosts || got[1].Name != "lock38, round 1" {
		t.Errorf("%d runs are shown, the first ghost is %s", len(got), got[1].Name)
	}
}

func TestLivePageProgress(t *testing.T) {
	t.Parallel()
	r := cut(synthetic([]string{"spin", "pubsub"}, []int{10}, 2), 3)
	l := under(r)
	parts := fmt.Sprint(l.Parts())
	if want := "[{Runs 2.4 4 2 of 4 done} {Window 2 5 2 of 5 s}]"; parts != want {
		t.Errorf("the progress is %s, not %s", parts, want)
	}
	r.Workload.Iterations, r.Runs[2].Speed.Acquisitions = 5000, 50
	if parts, want := fmt.Sprint(l.Parts()[1]), "{Window 50 5000 50 of 5000 acquisitions}"; parts != want {
		t.Errorf("the progress is %s, not %s", parts, want)
	}
	l.Now.Round = 2 // it begins
	r.Runs[2].Round = 1
	if parts := l.Parts()[1]; parts.Done != 0 {
		t.Errorf("before the window %+v", parts)
	}
}

// The status must change only from run to run, unless the servers stop answering, because a screen reader speaks each
// change.
func TestStatusChangesOncePerRun(t *testing.T) {
	t.Parallel()
	l := under(synthetic([]string{"spin"}, []int{10}, 2))
	for _, phase := range phases {
		l.Now.Phase = phase
		l.Report.Runs[1].WindowNS += 1e9
		if got, want := l.Status(), "Run 2 of 2: spin, round 2"; got != want {
			t.Errorf("in phase %q the status is %q, not %q", phase, got, want)
		}
	}
	l.Now.Phase = "the servers have stopped answering"
	if got := l.Status(); !strings.HasSuffix(got, ": the servers have stopped answering") {
		t.Errorf("the status is %q", got)
	}
}
