//go:build !race

package compare

import (
	"encoding/csv"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/results"
)

// sessionsFile has 96 sessions of one build, recorded one after the other on a machine
// that others used meanwhile:
//
//	lockbench -q -s spin,pubsub -c 20 --hold 1ms -d 1s -w 200ms --runs 4 --no-baselines --redis process -o json=FILE
//
// A line is a round: when its session started, its strategy, and every metric. A + marks a
// lower bound, and what could not be had is empty.
var sessionsFile = filepath.Join("testdata", "sessions.csv")

var record = flag.String("record", "", "write the reports of this directory into sessionsFile")

func TestRecord(t *testing.T) {
	if *record == "" {
		t.Skip("-record names no directory")
	}
	header := []string{"started", "strategy"}
	for _, m := range Metrics() {
		header = append(header, m.Name)
	}
	lines := [][]string{header}
	files, err := filepath.Glob(filepath.Join(*record, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		report, err := results.ReadJSON(f)
		if err != nil {
			t.Fatal(file, err)
		}
		_ = f.Close()
		for _, run := range report.Runs {
			if why(run) != "" {
				continue
			}
			line := []string{report.Started.Format(time.RFC3339Nano), run.Strategy}
			for _, m := range Metrics() {
				line = append(line, written(m.Of(run)))
			}
			lines = append(lines, line)
		}
	}
	f, err := os.Create(sessionsFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := csv.NewWriter(f).WriteAll(lines); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func written(f *results.Figure) string {
	switch {
	case f == nil:
		return ""
	case f.AtLeast:
		return strconv.FormatFloat(f.Value, 'g', 5, 64) + "+"
	}
	return strconv.FormatFloat(f.Value, 'g', 5, 64)
}

// enter puts a figure into a run, so that its metric finds it there.
var enter = map[string]func(r *results.Run, f results.Figure){
	"acq_per_s":               func(r *results.Run, f results.Figure) { r.Speed.PerSecond = f.Value },
	"utilisation":             func(r *results.Run, f results.Figure) { r.Speed.Utilisation = f.Value / 100 },
	"wait_p50":                func(r *results.Run, f results.Figure) { r.Waiting.PerAcquisition.P50 = bound(f) },
	"wait_p99":                func(r *results.Run, f results.Figure) { r.Waiting.PerAcquisition.P99 = bound(f) },
	"handoff_p50":             func(r *results.Run, f results.Figure) { r.Speed.Handoff.P50 = bound(f) },
	"handoff_p99":             func(r *results.Run, f results.Figure) { r.Speed.Handoff.P99 = bound(f) },
	"release_p50":             func(r *results.Run, f results.Figure) { r.Speed.Release.P50 = bound(f) },
	"redis_cpu_per_acq":       func(r *results.Run, f results.Figure) { r.Server.Window.CPU = new(f.Value * many / 1e9) },
	"jain":                    func(r *results.Run, f results.Figure) { r.Fairness.Jain = &f.Value },
	"starved":                 func(r *results.Run, f results.Figure) { r.Fairness.Starved = new(int(f.Value)) },
	"commands_per_acq":        func(r *results.Run, f results.Figure) { r.Server.Window.Calls = total(f) },
	"round_trips_per_acq":     func(r *results.Run, f results.Figure) { r.Server.Window.RoundTrips = total(f) },
	"bytes_in_per_acq":        func(r *results.Run, f results.Figure) { r.Server.Window.BytesIn = total(f) },
	"bytes_out_per_acq":       func(r *results.Run, f results.Figure) { r.Server.Window.BytesOut = total(f) },
	"attempts_per_acq":        func(r *results.Run, f results.Figure) { r.Effort.Attempts = &f.Value },
	"wake_ups_per_acq":        func(r *results.Run, f results.Figure) { r.Effort.WakeUps = &f.Value },
	"futile_wake_ups_per_acq": func(r *results.Run, f results.Figure) { r.Effort.Futile = &f.Value },
}

const many = 1e6 // acquisitions of the window that totals are given for

func total(f results.Figure) *int64 { return new(int64(f.Value * many)) }

func bound(f results.Figure) *results.Bound {
	return &results.Bound{NS: int64(f.Value), AtLeast: f.AtLeast}
}

// recorded are the sessions of sessionsFile in their order, of which these strategies ran.
func recorded(t *testing.T, strategies ...string) []Report {
	t.Helper()
	f, err := os.Open(sessionsFile)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(f).ReadAll()
	_ = f.Close()
	if err != nil {
		t.Fatal(err)
	}
	var columns []Metric
	for _, name := range lines[0][2:] {
		m, err := ParseMetric(name)
		if err != nil {
			t.Fatal(err)
		}
		columns = append(columns, m)
	}
	var sessions []Report
	for _, line := range lines[1:] {
		if !slices.Contains(strategies, line[1]) {
			continue
		}
		started, err := time.Parse(time.RFC3339Nano, line[0])
		if err != nil {
			t.Fatal(err)
		}
		if n := len(sessions); n == 0 || !sessions[n-1].Started.Equal(started) {
			sessions = append(sessions, Report{fmt.Sprintf("%d.json", n+1), &results.Report{Started: started}})
		}
		run := results.Run{Strategy: line[1]}
		run.Server.Window = &results.ServerDelta{Acquisitions: many}
		for i, text := range line[2:] {
			if text == "" {
				continue
			}
			number, atLeast := strings.CutSuffix(text, "+")
			value, err := strconv.ParseFloat(number, 64)
			if err != nil {
				t.Fatal(err)
			}
			m := columns[i]
			enter[m.Name](&run, results.Figure{Value: value, AtLeast: atLeast})
			if got := m.Of(run); got.AtLeast != atLeast || math.Abs(got.Value-value) > 1e-3*value {
				t.Fatalf("%s of %s is read as %s", m.Name, text, written(got))
			}
		}
		report := sessions[len(sessions)-1]
		report.Runs = append(report.Runs, run)
	}
	return sessions
}

// slowed is a session whose rates are a fifth lower.
func slowed(r Report) Report {
	worse := *r.Report
	worse.Runs = slices.Clone(r.Runs)
	for i := range worse.Runs {
		run := &worse.Runs[i]
		run.Speed.PerSecond *= 0.8
		run.Speed.Utilisation *= 0.8
	}
	return Report{r.File, &worse}
}

// simulations is how many comparisons are drawn, and how many of them may be alarms, a twentieth:
// five hundred with LOCKBENCH_MODEL=1 (make soak), and a hundred every day.
func simulations() (draws, allowed int) {
	draws = 100
	if os.Getenv("LOCKBENCH_MODEL") != "" {
		draws = 500
	}
	return draws, draws / 20
}

// alternating gives sessions that are in no order times of recording in turns.
func alternating(base, head []Report) ([]Report, []Report) {
	sides := [2][]Report{base, head}
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

// alarms counts how many of the comparisons that draw sets up call the head worse.
func alarms(t *testing.T, n int, rules Rules, draw func(i int) (base, head []Report)) int {
	t.Helper()
	worse := 0
	for i := range n {
		base, head := draw(i)
		c, err := Unpaired(Side{"base", base}, Side{"head", head}, rules)
		if err != nil {
			t.Fatal(err)
		}
		if c.Verdict == Worse {
			worse++
		}
	}
	return worse
}

// In any order the sessions of one build are alike, so that what a comparison calls worse
// is a false alarm.
func TestRecordedSessionsOfOneBuildAreRarelyCalledWorse(t *testing.T) {
	t.Parallel()
	draws, allowed := simulations()
	for _, test := range []struct {
		strategies []string
		n          int
		strict     bool
	}{{[]string{"spin"}, 4, false}, {[]string{"pubsub"}, 6, true}, {[]string{"spin", "pubsub"}, 6, false}} {
		sessions, rules := recorded(t, test.strategies...), DefaultRules()
		rules.Strict = test.strict
		random := rand.New(rand.NewPCG(uint64(test.n), uint64(len(test.strategies))))
		found := alarms(t, draws, rules, func(int) (base, head []Report) {
			random.Shuffle(len(sessions), func(i, j int) { sessions[i], sessions[j] = sessions[j], sessions[i] })
			return alternating(sessions[:test.n], sessions[test.n:2*test.n])
		})
		t.Logf("%v, %d sessions a side, strict %v: %d of %d", test.strategies, test.n, test.strict, found, draws)
		if found > allowed {
			t.Errorf("%v, %d sessions a side, strict %v: %d of %d comparisons of one build call it worse", test.strategies, test.n, test.strict, found, draws)
		}
	}
}

// As users record them, all of the base and then all of the head, sessions are not in any
// order: the machine of the recording became busier, and no test of two samples can tell
// that from a change. So none of them is called worse.
func TestRecordedSessionsOneSideBeforeTheOther(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"spin", "pubsub"} {
		sessions := recorded(t, strategy)
		for _, n := range []int{4, 6} {
			of := len(sessions) / (2 * n)
			worse := alarms(t, of, DefaultRules(), func(i int) (base, head []Report) {
				pair := sessions[2*n*i:]
				return pair[:n], pair[n : 2*n]
			})
			inTurns := alarms(t, of, DefaultRules(), func(i int) (base, head []Report) {
				for at, report := range sessions[2*n*i : 2*n*(i+1)] {
					if at%4 == 0 || at%4 == 3 {
						base = append(base, report)
					} else {
						head = append(head, report)
					}
				}
				return base, head
			})
			t.Logf("%s, %d sessions a side: %d of %d called worse one side before the other, %d in turns", strategy, n, worse, of, inTurns)
			if worse > 0 || inTurns > max(1, of/10) {
				t.Error("one build is called worse: never one side before the other, and rarely in turns")
			}
		}
	}
}

func TestAFifthLessIsFoundInRecordedSessions(t *testing.T) {
	t.Parallel()
	const n, draws, least = 8, 100, 95
	for _, strategy := range []string{"spin", "pubsub"} {
		sessions := recorded(t, strategy)
		random := rand.New(rand.NewPCG(n, 3))
		found := alarms(t, draws, DefaultRules(), func(int) (base, head []Report) {
			random.Shuffle(len(sessions), func(i, j int) { sessions[i], sessions[j] = sessions[j], sessions[i] })
			for _, report := range sessions[n : 2*n] {
				head = append(head, slowed(report))
			}
			return alternating(sessions[:n], head)
		})
		t.Logf("%s, %d sessions a side: a fifth less is found in %d of %d", strategy, n, found, draws)
		if found < least {
			t.Errorf("%s, %d sessions a side: a fifth less is found in %d of %d, wanted %d", strategy, n, found, draws, least)
		}
	}
}
