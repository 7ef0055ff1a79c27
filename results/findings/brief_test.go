package findings

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results"
)

// briefly are the texts of Brief.
func briefly(r *results.Report) []string {
	var texts []string
	for _, f := range Brief(r.Summaries()) {
		texts = append(texts, f.String())
	}
	return texts
}

func TestBrief(t *testing.T) {
	t.Parallel()
	commands := func(r *results.Run, n float64) { r.Server.Window.Calls = new(int64(4000 * n)) }
	faster := func(factor func(round int) float64) func(*results.Report) {
		return func(r *results.Report) {
			for i := 1; i < len(r.Runs); i += 2 {
				r.Runs[i].Speed.PerSecond = 800 * factor(i/2)
			}
		}
	}
	const both = "a and b served every client"
	const unknown = "highest throughput at 100 clients: b, 1.2 k/s; next a, 800/s: one run of each does not tell " +
		"whether they differ (--runs 6)"
	for _, c := range []struct {
		name   string
		rounds int
		change func(*results.Report)
		want   []string
	}{
		{
			"who was not served, who was the fastest, what it cost", 1,
			func(r *results.Report) {
				r.Runs[0].Fairness.Starved, r.Runs[1].Speed.PerSecond = new(13), 1234
				commands(&r.Runs[0], 17.1)
			},
			[]string{
				"b served every client; with a 13 of 100 clients got nothing in 5 s", unknown,
				"of the locks in Redis b sent the fewest commands for an acquisition, 6.0, and a the most, 17",
			},
		},
		{
			"the fewest commands are not told apart", 1,
			func(r *results.Report) {
				third := evenRun("c", 1)
				r.Strategies, r.Runs = append(r.Strategies, r.Strategies[0]), append(r.Runs, third)
				r.Strategies[2].Name, r.Runs[1].Speed.PerSecond = "c", 1234
				commands(&r.Runs[0], 0.171)
				commands(&r.Runs[1], 51)
				commands(&r.Runs[2], 0.169)
			},
			[]string{
				"a, b and c served every client", unknown,
				"of the locks in Redis a and c sent the fewest commands for an acquisition, 0.17, and b the most, 51",
			},
		},
		{
			"none served all", 1,
			func(r *results.Report) {
				r.Runs[0].Fairness.Starved, r.Runs[1].Fairness.Starved, r.Runs[1].Speed.PerSecond = new(13), new(2),
					1234
			},
			[]string{"with a 13 of 100 clients got nothing in 5 s, with b 2", unknown},
		},
		{
			"whom it served is not known", 1,
			func(r *results.Report) {
				r.Runs[0].Fairness.Starved, r.Runs[1].Fairness.Starved, r.Runs[1].Speed.PerSecond = nil, nil, 1234
			},
			[]string{unknown},
		},
		{
			"a few rounds tell the ratio, and no interval", 3,
			faster(func(round int) float64 { return 1.2 + float64(round)/100 }),
			[]string{
				both,
				"highest throughput at 100 clients: b, 968/s, 1.21 times that of a (1.20–1.22 in 3 rounds: an " +
					"interval takes 6)",
			},
		},
		{
			"six rounds tell an interval", 6, faster(func(round int) float64 { return 1.2 + float64(round)/100 }),
			[]string{
				both,
				"highest throughput at 100 clients: b, 980/s, 1.23 times that of a " +
					"(95 % interval 1.20–1.25, 6 rounds)",
			},
		},
		{
			"an interval that holds 1", 6, faster(func(round int) float64 { return 0.95 + float64(round)/20 }),
			[]string{
				both,
				"highest throughput at 100 clients: b, 860/s, 1.07 times that of a (95 % interval 0.95–1.20, 6 " +
					"rounds): not told apart",
			},
		},
		{
			"starved in some rounds", 3,
			func(r *results.Report) {
				r.Runs[4].Fairness.Starved = new(2)
				faster(func(int) float64 { return 2 })(r)
			},
			[]string{
				"b served every client; with a 0–2 of 100 clients got nothing in 5 s",
				"highest throughput at 100 clients: b, 1.60 k/s, 2.00 times that of a (2.00–2.00 in 3 rounds: an " +
					"interval takes 6)",
			},
		},
		{
			"the cheapest passes on within its processes", 1,
			func(r *results.Report) {
				r.Workload.Instances, r.Runs[1].Speed.PerSecond = 2, 1234
				commands(&r.Runs[0], 0.18)
				r.Runs[0].Fairness.PassesWithin, r.Runs[1].Fairness.PassesWithin = new(97.9), new(49.5)
			},
			[]string{both, unknown, "of the locks in Redis a sent the fewest commands for an acquisition, 0.18 " +
				"(98 % of the passes stayed within a process), and b the most, 6.0"},
		},
		{
			"different holds leave the gap to compare", 1,
			func(r *results.Report) {
				for i, gap := range []float64{123_456, 234_567} {
					r.Runs[i].Speed.Gap, r.Runs[i].Speed.Hold.MeanNS = new(gap), new(1e6*float64(i+1))
				}
				r.Runs[1].Speed.PerSecond = 1234
			},
			[]string{
				both,
				"shortest gap (mean holds differ) at 100 clients: a, 120 µs; next b, 230 µs: one run of each does " +
					"not tell whether they differ (--runs 6)",
			},
		},
		{
			"a store that is not Redis asks nothing of it", 1,
			func(r *results.Report) {
				r.Runs[1].Speed.PerSecond, r.Strategies[0].Store = 1234, "etcd"
				commands(&r.Runs[0], 1)
			},
			[]string{both, unknown},
		},
		{
			"what cannot be trusted is no rival", 1,
			func(r *results.Report) { r.Runs[0].Invalid = []string{"x"} },
			[]string{"b served every client"},
		},
		{
			"an open loop has the waits to tell", 1,
			func(r *results.Report) {
				r.Workload.Rate = 300
				for i := range r.Runs {
					r.Runs[i].Waiting.PerAcquisition.Count = 4000
				}
				r.Runs[0].Waiting.PerAcquisition.P99.NS = 123_000_000
				r.Runs[1].Labels = []string{"overloaded: 900/s found all 100 clients waiting"}
			},
			[]string{
				"b: overloaded: 900/s found all 100 clients waiting",
				"shortest wait p99 at 100 clients: a, 120 ms; next b, 300 ms: one run of each does not tell " +
					"whether they differ (--runs 6)",
			},
		},
		{
			"what was not safe comes first, and three are the most", 1,
			func(r *results.Report) {
				for i := range r.Runs {
					r.Runs[i].Safety.ExpiredOverlaps, r.Runs[i].Safety.LostUpdates = int64(2+i), new(int64(5))
				}
				r.Runs[0].Fairness.Starved = new(13)
				commands(&r.Runs[0], 17)
			},
			[]string{
				"a, b: 2–3 times a client still worked under a lease that had run out " +
					"while the next one held the lock",
				"a, b: 5 updates of the counter that it was to protect got lost",
				"b served every client; with a 13 of 100 clients got nothing in 5 s",
			},
		},
	} {
		r := even(c.rounds)
		c.change(r)
		if got := briefly(r); !slices.Equal(got, c.want) {
			t.Errorf("%s: it says\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// Of several numbers of clients the growth is told, of the most the rest.
func TestBriefOfASweep(t *testing.T) {
	t.Parallel()
	r := grown()
	r.Runs[2].Server.Window.Calls = new(int64(4000 * 30))
	r.Runs[3].Speed.PerSecond = 1234
	want := []string{
		"a clients=100 and b clients=100 served every client",
		"highest throughput at 100 clients: b clients=100, 1.2 k/s; next a clients=100, 800/s: one run of each " +
			"does not tell whether they differ (--runs 6)",
		"Commands per acquisition grow with the clients, a herd, from 10 to 100 clients: a (6.0 → 30)",
	}
	if got := briefly(r); !slices.Equal(got, want) {
		t.Errorf("it says\n%s", strings.Join(got, "\n"))
	}
}

// Two locks are never said to be alike, for that is nothing that a run can show.
func TestBriefNeverSaysTheSame(t *testing.T) {
	t.Parallel()
	for _, rounds := range []int{1, 3, 6} {
		for _, text := range briefly(even(rounds)) {
			for _, bad := range []string{"equal", "same", "as fast"} {
				if strings.Contains(text, bad) {
					t.Errorf("of %d rounds it says %q", rounds, text)
				}
			}
		}
	}
}

// A round that cannot tell who starved does not show that every client was served.
func TestRoundsThatCannotTellAreNotHidden(t *testing.T) {
	t.Parallel()
	r := even(2)
	r.Runs[0].Fairness.Starved = nil                                      // a, round 1
	r.Runs[1].Fairness.Starved, r.Runs[3].Fairness.Starved = nil, new(12) // b, round 1 and 2
	const want = "with b 12 of 100 clients got nothing in 5 s, as far as 1 of 2 runs can tell"
	if got := briefly(r); !slices.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	const never = "waiting: b: 12 of 100 clients never got the lock in 5 s, as far as 1 of 2 runs can tell; " +
		"6.00 commands per acquisition."
	if got := told(r); !slices.Contains(got, never) {
		t.Errorf("%q, want %q", got, never)
	}
	for _, s := range r.Summaries() {
		for _, group := range []results.Group{results.ShortGroup, results.FairnessGroup} {
			for _, c := range results.Columns(group, r) {
				if c.Name == "starved" && c.Text(s) != results.NotKnown {
					t.Errorf("%s, %s: %q in the column, one round cannot tell", group, s.Name, c.Text(s))
				}
			}
		}
	}
}
