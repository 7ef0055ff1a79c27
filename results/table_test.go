package results

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"github.com/lockbench/lockbench/workloads"
)

var update = flag.Bool("update", false, "write the golden files anew")

// cases are reports whose tables are kept as golden files.
func cases() map[string]*Report {
	rounds := sample()
	rounds.Rounds = 3
	rounds.Runs = nil
	for round, factor := range []float64{1, 1.1, 0.9} {
		rounds.Runs = append(rounds.Runs,
			sampleRun("spin", round+1, 411*factor, 1.2*factor),
			sampleRun("pubsub", round+1, 806*factor, factor),
			sampleRun("redsync", round+1, 212*factor, 1.4*factor))
	}
	rounds.Runs[4].Invalid = []string{"its books do not balance: a client's phases differ from the window by 0.31 %"}

	sweep := sample()
	for _, keys := range []int{1, 8} {
		point := workloads.Point{Label: "keys=" + strconv.Itoa(keys), Workload: sweep.Workload}
		point.Workload.Keys = keys
		sweep.Points = append(sweep.Points, point)
	}
	sweep.Rounds, sweep.Runs, sweep.Strategies = 2, nil, sweep.Strategies[:2]
	for round := range 2 {
		for i, point := range sweep.Points {
			for _, name := range []string{"pubsub", "spin"} {
				run := sampleRun(name, round+1, 400*float64(i+1+len(name)+round), 1)
				run.Point = point.Label
				sweep.Runs = append(sweep.Runs, run)
			}
		}
	}

	censored := sample()
	waits := &censored.Runs[2].Waiting
	for _, b := range []*Bound{waits.PerAcquisition.P99, waits.PerAcquisition.Max, waits.PerClient.P50, waits.PerClient.P99} {
		b.AtLeast = true
	}
	censored.Runs[2].Fairness = Fairness{TurnsMax: 210, Starved: new(342), LongestWait: &Bound{NS: 6.01e9, AtLeast: true}}
	censored.Runs[2].Labels = []string{"generator-bound"}
	censored.Runs[0].Labels = []string{"generator-bound", "foreign traffic 3.1%"}

	nils := sample()
	nils.Floors.PingP50, nils.Floors.PingP99, nils.Floors.EvalP50, nils.Floors.EvalP99 = nil, nil, nil, nil
	nils.Runs = []Run{{Strategy: "spin", Round: 1}, sampleRun("pubsub", 1, 806, 1)}
	nils.Runs[1].Server = Server{Window: &ServerDelta{Seconds: 5}, Peak: &ServerPeak{}}

	invalid := sample()
	invalid.Runs[1].Invalid = []string{"12 commands timed out waiting for a connection (see --pool)", "3 clients did not come back when told to stop"}
	invalid.Runs[1].Errors = []ErrorCount{{"redis: connection pool timeout", 12}, {"context deadline exceeded", 1}}

	broken := sample()
	broken.Strategies = append(broken.Strategies,
		Strategy{Name: "noop", Capacity: 1, Instances: 10},
		Strategy{Name: "setnx:retry=5ms", Claims: []string{"exclusion"}, Caveat: "SETNX without a TTL: a crashed holder blocks the lock for ever", Capacity: 1})
	broken.Runs = append(broken.Runs, sampleRun("noop", 1, 1.9e6, 0.001), sampleRun("setnx:retry=5ms", 1, 300, 1))
	broken.Runs[2].Safety = Safety{
		Overlaps: 3, OverlapNS: 1e6, Late: 1, MaxHolders: 2, FencedLeases: 2000, FencingRegression: 2, LostLeases: 4,
		Leftovers: []string{"key lockbench:{1}:a", "key lockbench:{1}:b", "channel c", "channel d"}, LeftoverCount: new(int64(25)),
		Broken: []string{"exclusion: 3 overlaps within valid leases", "fencing: 2 tokens not larger than an earlier one"},
	}
	broken.Runs[3].Safety = Safety{Overlaps: 1_900_000, MaxHolders: 500}

	work := sample()
	work.Workload.Work, work.Workload.Coalesce = workloads.WorkCounter, true
	for i := range work.Runs {
		work.Runs[i].Speed.ServedPerSecond = 4 * work.Runs[i].Speed.PerSecond
	}
	work.Runs[2].Safety.LostUpdates = new(int64(17))
	work.Runs[2].Safety.Late, work.Runs[1].Safety.Late, work.Runs[1].Safety.FencedLeases = 5, 3, 900

	faults := faulty()

	interrupted := sample()
	interrupted.Interrupted = true
	interrupted.Runs = interrupted.Runs[:2]
	interrupted.Runs[1].Partial, interrupted.Runs[1].Labels = true, []string{"partial: 1.204s"}
	interrupted.Warnings = []string{"--hold 40s is longer than --ttl 30s: leases run out while they are held, so locks without a watchdog will overlap"}
	interrupted.LeftOut = []LeftOut{{"redlock", "it needs 3 independent Redis nodes, there is 1"}}

	judged := sample()
	for _, expression := range []string{"acq_per_s>400", "wake_ups_per_acq{strategy:redsync}<2", "violations==0"} {
		threshold, err := ParseThreshold(expression)
		if err != nil {
			panic(err)
		}
		judged.Thresholds = append(judged.Thresholds, Judge(judged, []Threshold{threshold})...)
	}

	empty := sample()
	empty.Runs, empty.Floors = nil, nil
	empty.Error, empty.Unreachable = "Redis unreachable: dial tcp 127.0.0.1:6390: connect: connection refused", true

	return map[string]*Report{
		"normal": sample(), "rounds": rounds, "sweep": sweep, "censored": censored, "nils": nils, "invalid": invalid,
		"broken": broken, "work": work, "faults": faults, "interrupted": interrupted, "empty": empty, "thresholds": judged,
	}
}

func draw(t *testing.T, r *Report, opts TableOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteTable(&b, r, opts); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTableGolden(t *testing.T) {
	for name, report := range cases() {
		t.Run(name, func(t *testing.T) {
			got := draw(t, report, TableOptions{})
			golden := filepath.Join("testdata", "table-"+name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("table (-want +got; -update accepts it):\n%s", diff)
			}
		})
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestTableColourChangesNoCharacter(t *testing.T) {
	for name, report := range cases() {
		plain, coloured := draw(t, report, TableOptions{}), draw(t, report, TableOptions{Color: true})
		if !strings.Contains(coloured, "\x1b[") {
			t.Errorf("%s: no colour", name)
		}
		if diff := cmp.Diff(plain, trimLines(escapes.ReplaceAllString(coloured, ""))); diff != "" {
			t.Errorf("%s (-plain +coloured):\n%s", name, diff)
		}
	}
}

func trimLines(s string) string {
	return regexp.MustCompile(`(?m) +$`).ReplaceAllString(s, "")
}

// extreme has the widest figure that is still plausible in every cell.
func extreme() *Report {
	r := sample()
	r.Rounds = 12
	r.Workload.Clients, r.Workload.Instances, r.Workload.Keys = 100_000, 10_000, 100_000
	timeout := r.Workload.TTL
	r.Workload.Timeout, r.Workload.Think = &timeout, workloads.Fixed(time.Duration(timeout))
	r.Workload.Work, r.Workload.Coalesce = workloads.WorkCounter, true
	r.Workload.Faults = faulty().Workload.Faults
	r.Environment.CPUModel = strings.Repeat("Very Long Processor Name ", 6)
	r.Redis.Address = strings.Repeat("a-host-name-without-a-break", 6) + ":6379"
	r.Warnings = []string{strings.Repeat("word ", 60), strings.Repeat("x", 300), strings.Repeat("錠", 90)}
	names := []string{
		"spin:backoff=decorrelated,base=1.5ms,cap=100.25ms,multiplier=1.75",
		strings.Repeat("name", 20), strings.Repeat("錠", 30), "pubsub",
	}
	r.Strategies, r.Runs = nil, nil
	for _, name := range names {
		r.Strategies = append(r.Strategies, Strategy{Name: name, Claims: []string{"exclusion"}, Caveat: "breaks " + strings.Repeat("often ", 40)})
		for round := range 12 {
			run := sampleRun(name, round+1, 123_456, 1)
			widest(&run)
			if round > 0 && name != "pubsub" {
				run.Invalid = []string{strings.Repeat("reason ", 30)}
			}
			if name == "pubsub" {
				run.Invalid = []string{"every one"}
			}
			r.Runs = append(r.Runs, run)
		}
	}
	return r
}

func widest(run *Run) {
	run.Faults = faulty().Runs[2].Faults
	for i := range run.Faults {
		for j := range run.Faults[i].Strikes {
			run.Faults[i].Strikes[j] = Strike{
				RecoveryNS: new(int64(123_456_789)), Stall: &Bound{123_456_789, true},
				Overlaps: 99_999, Late: 99_999, LateNS: 123_456_789, LostWakeUps: 99_999,
			}
		}
	}
	long := func() *Bound { return &Bound{NS: 123_456_789, AtLeast: true} }
	run.Speed.Utilisation, run.Speed.ServedPerSecond = 1.234, 123_456
	for _, d := range []*Distribution{
		&run.Speed.Handoff, &run.Speed.Hold, &run.Speed.Release, &run.Waiting.PerAcquisition, &run.Waiting.PerClient,
	} {
		d.P50, d.P99, d.Max = long(), long(), long()
	}
	run.Waiting.Open, run.Waiting.GaveUp = 99_999, 99_999
	run.Fairness = Fairness{TurnsMin: 12_345, TurnsMax: 99_999, Jain: new(0.987), Starved: new(99_999), LongestWait: long()}
	run.Effort = Effort{Attempts: new(12_345.0), WakeUps: new(12_345.0), Futile: new(12_345.0)}
	window := run.Server.Window
	window.BytesIn, window.BytesOut = new(window.Acquisitions*123_456), new(window.Acquisitions*123_456)
	window.Calls, window.RoundTrips = new(window.Acquisitions*12_345), new(window.Acquisitions*12_345)
	window.CPU, window.Foreign = new(6.17), new(99.9)
	run.Server.Peak = &ServerPeak{Clients: new(int64(99_999)), Subscriptions: new(int64(99_999)), MemoryBytes: new(int64(123_000_000))}
	run.Safety = Safety{
		Overlaps: 99_999, Late: 99_999, FencedLeases: 1, FencingRegression: 99_999, LostLeases: 99_999, LeftoverCount: new(int64(99_999)), Stuck: 99_999, LostUpdates: new(int64(99_999)),
		Leftovers: []string{strings.Repeat("key", 80)},
		Broken:    []string{"exclusion: " + strings.Repeat("n", 200), "fencing: x", "FIFO: y"},
	}
	run.Errors = []ErrorCount{{strings.Repeat("error", 60), 99_999}}
}

func TestTableFits120Columns(t *testing.T) {
	reports := cases()
	reports["extreme"] = extreme()
	for name, report := range reports {
		for _, color := range []bool{false, true} {
			for line := range strings.Lines(draw(t, report, TableOptions{Color: color})) {
				line = escapes.ReplaceAllString(strings.TrimSuffix(line, "\n"), "")
				if width := twwidth.Width(line); width > tableWidth {
					t.Errorf("%s: %d columns: %s", name, width, line)
				}
			}
		}
	}
}

func TestTableOfLongNamesLosesNone(t *testing.T) {
	r := extreme()
	flat := strings.NewReplacer("\n", "", " ", "").Replace(draw(t, r, TableOptions{}))
	if name := r.Strategies[0].Name; !strings.Contains(flat, "reason") || !strings.Contains(flat, name) {
		t.Errorf("%q is not in the table", name)
	}
}

func TestTableOfZerosHasNoNaN(t *testing.T) {
	r := &Report{Rounds: 1, Floors: &Floors{}, Strategies: []Strategy{{Name: "a"}}, Runs: []Run{{Strategy: "a"}}}
	r.Runs[0].Server.Window = &ServerDelta{Calls: new(int64(0)), BytesIn: new(int64(0)), CPU: new(0.0)}
	got := draw(t, r, TableOptions{})
	for _, bad := range []string{"NaN", "Inf", "%!"} {
		if strings.Contains(got, bad) {
			t.Errorf("the table has %s:\n%s", bad, got)
		}
	}
}

func TestUnits(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{nanoseconds(0), "0"},
		{nanoseconds(850), "850 ns"},
		{nanoseconds(999_700), "1.00 ms"},
		{nanoseconds(1_236_000), "1.24 ms"},
		{nanoseconds(float64(90 * time.Minute)), "5400 s"},
		{nanoseconds(0.4), "0.400"},
		{sized(0.2), "0.200 B"},
		{sized(12_345), "12.3 KB"},
		{number(999.6), "1.00 k"},
		{number(806.2), "806"},
		{number(2_104_000), "2.10 M"},
		{significant(0.0004), "<0.001"},
		{significant(0.1234), "0.123"},
		{significant(1), "1.00"},
		{percent(100), "100 %"},
		{count(99_999), "99999"},
		{count(1_900_000), "1.90 M"},
		{(*Bound)(nil).String(), "–"},
		{(&Bound{NS: 1500, AtLeast: true}).String(), "≥ 1.50 µs"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}
