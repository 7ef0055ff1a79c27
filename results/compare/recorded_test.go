//go:build !race

package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/lockbench/lockbench/results"
)

// recorded returns 96 sessions of one build, in the order of their recording, with only the runs of the given
// strategies. They were recorded one after the other, while the machine also had other load:
//
//	lockbench -q -s spin,pubsub -c 20 --hold 1ms -d 1s -w 200ms --runs 4 --no-baselines --redis process -o json=FILE
//
// Each line of testdata/sessions.json is a run as in a report, with the start time of its session, but it has only the
// fields from which metrics are computed.
func recorded(t *testing.T, strategies ...string) (sessions []results.File) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "sessions.json"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var run results.Run
		if err := json.Unmarshal(line, &run); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(strategies, run.Strategy) {
			continue
		}
		if n := len(sessions); n == 0 || !sessions[n-1].Started.Equal(run.Started) {
			report := &results.Report{Started: run.Started}
			sessions = append(sessions, results.File{Name: fmt.Sprintf("%d.json", n+1), Report: report})
		}
		report := sessions[len(sessions)-1]
		report.Runs = append(report.Runs, run)
	}
	return sessions
}

func slowed(r results.File) results.File {
	worse := *r.Report
	worse.Runs = slices.Clone(r.Runs)
	for i := range worse.Runs {
		run := &worse.Runs[i]
		run.Speed.PerSecond *= 0.8
		run.Speed.Utilisation *= 0.8
	}
	return results.File{Name: r.Name, Report: &worse}
}

// simulations returns the number of comparisons that a test draws: 500 if LOCKBENCH_MODEL is set (make soak), otherwise
// 20.
func simulations() int {
	if os.Getenv("LOCKBENCH_MODEL") != "" {
		return 500
	}
	return 20
}

// alternating returns copies of both sides whose start times alternate, as if base and head sessions had been recorded
// in turns.
func alternating(base, head []results.File) ([]results.File, []results.File) {
	sides := [2][]results.File{base, head}
	for of, side := range sides {
		sides[of] = slices.Clone(side)
		for i, r := range side {
			again := *r.Report
			again.Started = time.Unix(int64(2*i+of), 0)
			sides[of][i].Report = &again
		}
	}
	return sides[0], sides[1]
}

// Base and head are random sessions of the same build, so every verdict "worse" is a false alarm. At most one
// comparison in twenty may raise one. If the head's rates are made 20 % lower, at least 19 of 20 comparisons must say
// "worse".
func TestRecordedSessions(t *testing.T) {
	t.Parallel()
	draws := simulations()
	for _, test := range []struct {
		strategies []string
		n          int  // sessions a side
		all        bool // metrics count
		slower     bool // of the head
	}{
		{[]string{"spin"}, 4, false, false},
		{[]string{"pubsub"}, 6, true, false},
		{[]string{"spin", "pubsub"}, 6, false, false},
		{[]string{"spin"}, 8, false, true},
		{[]string{"pubsub"}, 8, false, true},
	} {
		sessions, rules := recorded(t, test.strategies...), DefaultRules()
		rules.AllMetrics = test.all
		random := rand.New(rand.NewPCG(uint64(test.n), uint64(len(test.strategies))))
		worse := 0
		for range draws {
			random.Shuffle(len(sessions), func(i, j int) { sessions[i], sessions[j] = sessions[j], sessions[i] })
			base, head := alternating(sessions[:test.n], sessions[test.n:2*test.n])
			for i := range head {
				if test.slower {
					head[i] = slowed(head[i])
				}
			}
			c, err := Unpaired(Side{Name: "base", Reports: base}, Side{Name: "head", Reports: head}, rules)
			if err != nil {
				t.Fatal(err)
			}
			if c.Verdict == Worse {
				worse++
			}
		}
		t.Logf("%+v: %d of %d are worse", test, worse, draws)
		if test.slower && worse < draws*19/20 || !test.slower && worse > draws/20 {
			t.Errorf("%+v: %d of %d are called worse", test, worse, draws)
		}
	}
}
