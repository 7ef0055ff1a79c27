package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/results"
)

// The rounds of a session share a server and the state of the machine, so they must count as a single value per side.
// With one session of six rounds per side, the verdict must be undecided, although the head takes 1.5 times as long.
// With four sessions per side it must be "worse".
func TestRoundsOfASessionCountOnce(t *testing.T) {
	t.Parallel()
	const rounds = 6
	sessions := func(name string, n, offset int, slower float64) Side {
		s := side(name, n, offset, slower, 1)
		for i, report := range s.Reports {
			first := report.Runs[0]
			for round := 2; round <= rounds; round++ {
				run := first
				run.Round = round
				run.Speed.PerSecond = first.Speed.PerSecond * noise(i+round)
				report.Runs = append(report.Runs, run)
			}
		}
		return s
	}
	c := do(t, Unpaired, sessions("base", 1, 0, 1), sessions("head", 1, 5, 1.5))
	r := c.Strategies[0].Results[0]
	if c.Verdict != Undecided || r.Base.N != 1 || r.Head.N != 1 || r.Base.Median == nil || r.P != nil ||
		r.Needed != 4 || r.Delta == nil || *r.Delta > -0.3 {
		t.Errorf("one session a side: %s, %+v", c.Headline(), r)
	}
	if want := "undecided: acquisitions: only 1+1 sessions: 4 a side are needed for 1 test"; c.Headline() != want {
		t.Errorf("headline %q, want %q", c.Headline(), want)
	}
	c = do(t, Unpaired, sessions("base", 4, 0, 1), sessions("head", 4, 5, 1.5))
	if r := c.Strategies[0].Results[0]; r.Base.N != 4 || c.Verdict != Worse {
		t.Errorf("four sessions a side: %s, %+v", c.Headline(), r)
	}
}

func TestCopiesOfASessionCountOnce(t *testing.T) {
	t.Parallel()
	base, head := side("base", 4, 0, 1, 1), side("head", 4, 5, 1.5, 1)
	for i, report := range append(base.Reports, head.Reports...) {
		report.Started = time.Unix(int64(i%7), 0) // the last of the head is as old as the first of the base
	}
	for i := range base.Reports {
		base.Reports[i].Started = base.Reports[0].Started
	}
	c := do(t, Unpaired, base, head)
	if c.Verdict != Undecided || c.Base.Reports != 1 || c.Head.Reports != 4 || len(c.LeftOut) != 3 ||
		c.LeftOut[0].Text != "base-2.json: the same session as base-1.json" {
		t.Errorf("%s, %d and %d reports, left out %q", c.Headline(), c.Base.Reports, c.Head.Reports, c.LeftOut)
	}
}

// recordedAs sets the start times of the sessions so that they follow one another in order: "bhbh" means base, head,
// base, head.
func recordedAs(base, head Side, order string) {
	next := map[rune][]results.File{'b': base.Reports, 'h': head.Reports}
	for i, of := range order {
		next[of][0].Started = time.Unix(int64(i), 0)
		next[of] = next[of][1:]
	}
}

func TestOnlyAlternatingSessionsDecide(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		order string
		want  results.Verdict
	}{
		{"bbbbbbhhhhhh", Undecided},
		{"hhhhhhbbbbbb", Undecided},
		{"bbbhhhbbbhhh", Undecided},
		{"bbhhbbhhbbhh", Undecided},
		{"bhbhbhbhbhbh", Worse},
		{"bhhbbhhbbhhb", Worse},
		{"bhhbbhbhhbbh", Worse}, // pairs in any order
	} {
		base, head := side("base", 6, 0, 1, 1), side("head", 6, 5, 1.2, 8.0/7)
		recordedAs(base, head, test.order)
		rules := DefaultRules()
		rules.AllMetrics = true
		c, err := Unpaired(base, head, rules)
		if err != nil {
			t.Fatal(err)
		}
		drifts := strings.Contains(c.Headline(), results.NotInTurns.Remark().Text)
		if c.Verdict != test.want || drifts != (test.want == Undecided) {
			t.Errorf("%s: %s, want %s", test.order, c.Headline(), test.want)
		}
		if said := strings.Contains(fmt.Sprint(c.Notes), "not recorded in turns"); said != (test.want == Undecided) {
			t.Errorf("%s: notes %q", test.order, c.Notes)
		}
	}
}

// The speed of a simulated machine drifts, so that each session is about as fast as the one before. If the sides are
// recorded in two blocks, their rates often differ although the build is the same. The verdict must then not be
// "worse". If base and head sessions alternate, a real change must still be found.
func TestDriftIsNotCalledAChange(t *testing.T) {
	t.Parallel()
	const n, draws, correlation, scatter = 6, 20, 0.8, 0.05
	random := rand.New(rand.NewPCG(13, 80))
	drift := func(order string, slower float64) (Side, Side) {
		base, head := side("base", n, 0, 1, 1), side("head", n, 5, 1, 1)
		recordedAs(base, head, order)
		noise := random.NormFloat64()
		at := map[rune]int{}
		for _, of := range order {
			rate := 800 * (1 + scatter*noise)
			report := base.Reports[at[of]]
			if of == 'h' {
				report, rate = head.Reports[at[of]], rate/slower
			}
			report.Runs[0].Speed.PerSecond = rate
			at[of]++
			noise = correlation*noise + math.Sqrt(1-correlation*correlation)*random.NormFloat64()
		}
		return base, head
	}
	count := func(order string, slower float64) (worse, differ int) {
		for range draws {
			base, head := drift(order, slower)
			c := do(t, Unpaired, base, head)
			r := c.Strategies[0].Results[0]
			if c.Verdict == Worse {
				worse++
			}
			if *r.Adjusted <= c.Rules.Alpha && math.Abs(*r.Delta) > r.Threshold {
				differ++
			}
		}
		return worse, differ
	}
	worse, differ := count("bbbbbbhhhhhh", 1)
	t.Logf("in blocks %d of %d differ, %d are called worse", differ, draws, worse)
	if worse > 0 || differ < draws/10 { // a test that drift does not disturb would prove nothing
		t.Errorf("in blocks %d of %d of one build differ, %d are called worse", differ, draws, worse)
	}
	if worse, _ = count("bhbhbhbhbhbh", 1); worse > draws/20 {
		t.Errorf("in turns %d of %d of one build are called worse", worse, draws)
	}
	if worse, _ = count("bhbhbhbhbhbh", 1.5); worse < draws*9/10 {
		t.Errorf("in turns a build that takes half as long again is called worse in %d of %d", worse, draws)
	}
}

// Only attempts_per_acq became worse. By default this metric does not decide the verdict, and the headline must say so.
// With --all-metrics, or as the primary metric, it must decide.
func TestOnlyPrimaryMetricAndCountsDecide(t *testing.T) {
	t.Parallel()
	for name, compare := range map[string]method{MethodUnpaired: Unpaired, MethodPaired: Paired} {
		base, head := side("base", 12, 0, 1, 1), side("head", 12, 5, 1, 1)
		for _, report := range head.Reports {
			*report.Runs[0].Effort.Attempts *= 8.0 / 7
		}
		rules := DefaultRules()
		c, err := compare(base, head, rules)
		if err != nil {
			t.Fatal(err)
		}
		if c.Verdict != NoneFound || !strings.Contains(c.Headline(),
			"not counted without --all-metrics: worse: spin attempts per acq +14.3 %") {
			t.Errorf("%s: %s", name, c.Headline())
		}
		rules.AllMetrics = true
		if c, err = compare(base, head, rules); err != nil || c.Verdict != Worse {
			t.Errorf("%s, all: %s, %v", name, c.Headline(), err)
		}
		rules.AllMetrics, rules.Primary = false, "attempts_per_acq"
		if c, err = compare(base, head, rules); err != nil || c.Verdict != Worse {
			t.Errorf("%s by attempts: %s, %v", name, c.Headline(), err)
		}
	}
}

// noisy replaces the rates of a side by random ones, with a median of 800/s × (1 − slower) and a scatter of about 20 %.
func noisy(s Side, slower float64, seed uint64) Side {
	random := rand.New(rand.NewPCG(18, seed))
	for _, report := range s.Reports {
		report.Runs[0].Speed.PerSecond = 800 * (1 - slower) * math.Exp(0.2*random.NormFloat64())
	}
	return s
}

// withOneClient adds a report with a single client for each report of the side. commands is the number of commands per
// acquisition in these reports.
func withOneClient(s Side, commands int64) Side {
	for i, report := range s.Reports {
		single := *report.Report
		run := report.Runs[0]
		run.Server.Window = &results.ServerDelta{Acquisitions: 100, Calls: new(100 * commands), CPU: new(0.1)}
		single.Runs = []results.Run{run}
		s.Alone = append(s.Alone, results.File{Name: fmt.Sprintf("alone-%s-%d.json", s.Name, i+1), Report: &single})
	}
	return s
}

// The rates scatter too much for a verdict. If the builds are equal, the comparison must be undecided and propose a
// number of pairs. If the head needs one more command per acquisition, with many clients or with one, it must be
// "worse". If the head is 20 % slower, it must be "worse" or undecided, and never "none found".
func TestCountsDecideWhereTimesCannot(t *testing.T) {
	t.Parallel()
	verdicts := map[results.Verdict]int{}
	for seed := range uint64(10) {
		base, head := noisy(side("base", 14, 0, 1, 1), 0, 2*seed), noisy(side("head", 14, 5, 1, 1), 0, 2*seed+1)
		c := do(t, Paired, withOneClient(base, 7), withOneClient(head, 7))
		if c.Verdict != Undecided || !c.Scattered() || !strings.Contains(c.Headline(), " pairs are enough") {
			t.Errorf("the same code: %s", c.Headline())
		}
		for what, c := range map[string]*Comparison{
			"spin commands":       do(t, Paired, base, noisy(side("head", 14, 5, 1, 8.0/7), 0, 2*seed+1)),
			"spin alone commands": do(t, Paired, withOneClient(base, 7), withOneClient(head, 8)),
		} {
			if c.Verdict != Worse || !strings.HasPrefix(c.Headline(), "worse: "+what+" per acq +14.3 %") {
				t.Errorf("a command more: %s, want %s", c.Headline(), what)
			}
		}
		slower := do(t, Paired, base, noisy(side("head", 14, 5, 1, 1), 0.2, 2*seed+1))
		verdicts[slower.Verdict]++
		if said := slower.Headline(); strings.Contains(said, "no difference") ||
			slower.Verdict == Undecided && !strings.Contains(said, "are enough") {
			t.Errorf("a fifth slower: %s", slower.Headline())
		}
	}
	if verdicts[NoneFound]+verdicts[Better] > 0 {
		t.Errorf("a fifth slower: %v", verdicts)
	}
	t.Logf("a fifth slower: %v", verdicts)
}

// Among the runs with a single client, one of the head broke a guarantee, and one of the base is invalid. The
// comparison must list the broken guarantee, and leave out the invalid run.
func TestSingleClientRunsAreJudged(t *testing.T) {
	t.Parallel()
	base, head := withOneClient(side("base", 14, 0, 1, 1), 7), withOneClient(side("head", 14, 5, 1, 1), 7)
	head.Alone[2].Runs[0].Safety.Broken = results.PlainTexts("exclusion: 1 overlap")
	base.Alone[1].Runs[0].Invalid = results.PlainTexts("books")
	c := do(t, Paired, base, head)
	if c.Broken.String() != "alone-head-3.json: spin round 1: exclusion: 1 overlap" ||
		c.LeftOut.String() != "alone-base-2.json: spin round 1: invalid: books" {
		t.Errorf("broken %q, left out %q", c.Broken, c.LeftOut)
	}
	if s := c.Strategies[1]; s.Name != "spin alone" || s.Verdict != NoneFound || s.Results[0].Base.N != 13 {
		t.Errorf("%s: %s of %d pairs", s.Name, s.Verdict, s.Results[0].Base.N)
	}
}

// The head needs fewer commands, but the times are undecided. The verdict must be undecided and not "better".
func TestFewerCommandsDoNotHideUndecidedTimes(t *testing.T) {
	t.Parallel()
	c := do(t, Paired, noisy(side("base", 14, 0, 1, 1), 0, 1), noisy(side("head", 14, 5, 1, 6.0/7), 0, 2))
	if c.Verdict != Undecided || !strings.Contains(c.Headline(), "; better: spin commands per acq -14.3 %") {
		t.Errorf("%s", c.Headline())
	}
}

// A comparison must report its smallest detectable change. If that is above the threshold, the comparison must count as
// insensitive and be undecided.
func TestNoneFoundReportsDetectableChange(t *testing.T) {
	t.Parallel()
	for name, compare := range map[string]method{MethodUnpaired: Unpaired, MethodPaired: Paired} {
		c := do(t, compare, side("base", 12, 0, 1, 1), side("head", 12, 5, 1, 1))
		r := c.Strategies[0].Results[0]
		if c.Verdict != NoneFound || r.Detectable == nil || *r.Detectable > -0.05 || *r.Detectable < -0.08 ||
			!r.Sensitive || c.Insensitive() != "" {
			t.Errorf("%s, quiet: %s, insensitive %q: %+v", name, c.Headline(), c.Insensitive(), r)
		}
		base, head := side("base", 12, 0, 1, 1), side("head", 12, 5, 1, 1)
		for i := range base.Reports { // twenty times as noisy
			for _, report := range []results.File{base.Reports[i], head.Reports[i]} {
				rate := &report.Runs[0].Speed.PerSecond
				*rate = 806 * math.Pow(*rate/806, 20)
			}
		}
		c = do(t, compare, base, head)
		r = c.Strategies[0].Results[0]
		if c.Verdict != Undecided || r.Detectable == nil || *r.Detectable > -0.1 || r.Sensitive ||
			!strings.Contains(c.Insensitive(), "spin acquisitions (smallest detectable change -") {
			t.Errorf("%s, noisy: %s, insensitive %q: %+v", name, c.Headline(), c.Insensitive(), r)
		}
		want := fmt.Sprintf("undecided: acquisitions: it changed by %s (%s), and the smallest change this session would "+
			"have detected is %.1f %%, above the threshold of 5 %%: about %d ", percent(r.Delta), r.interval(),
			-100**r.Detectable, r.Needed)
		if !strings.HasPrefix(c.Headline(), want) {
			t.Errorf("%s, noisy: headline %q, want %q", name, c.Headline(), want)
		}
	}
	base, head := side("base", 6, 0, 1, 1), side("head", 6, 5, 1, 1)
	recordedAs(base, head, "bbbbbbhhhhhh")
	c := do(t, Unpaired, base, head)
	if c.Verdict != Undecided || c.Insensitive() == "" || !strings.Contains(c.Headline(), "is not known") {
		t.Errorf("not in turns: %s, insensitive %q", c.Headline(), c.Insensitive())
	}
}

// bounded returns a side in which ms lists the wait p99 of the reports, in milliseconds. A negative value −x means that
// only the lower bound x is known.
func bounded(name string, ms ...float64) Side {
	s := side(name, len(ms), 0, 1, 1)
	for i, v := range ms {
		s.Reports[i].Runs[0].Waiting.PerAcquisition.P99 = &results.Bound{NS: int64(max(v, -v) * 1e6), AtLeast: v < 0}
	}
	return s
}

func TestVerdictsFromLowerBounds(t *testing.T) {
	t.Parallel()
	repeated := func(pattern ...float64) []float64 {
		var all []float64
		for i := range 12 {
			all = append(all, pattern[i%len(pattern)]*noise(i))
		}
		return all
	}
	for _, test := range []struct {
		name       string
		base, head []float64
		want       results.Verdict
	}{
		{"exact and slower", repeated(100), repeated(150), Worse},
		{"nothing but bounds", repeated(-100), repeated(-100), Undecided},
		{"bounds of a head below the base", repeated(150), repeated(-100), Undecided},
		{"bounds of a base below the head", repeated(-100), repeated(150), Undecided},
		{"bounds of a head above the base", repeated(100), repeated(-150), Worse},
		{"bounds of a base above the head", repeated(-150), repeated(100), Better},
		{"most are bounds", repeated(100, -100, -100), repeated(100, -100, -100), Undecided},
		{"one bound among equals", append(repeated(100)[:11], -100), repeated(100), Undecided},
		{"one bound among slower ones", repeated(100), append(repeated(150)[:11], -150), Worse},
	} {
		for name, compare := range map[string]method{MethodUnpaired: Unpaired, MethodPaired: Paired} {
			rules := DefaultRules()
			rules.Primary = "wait_p99"
			c, err := compare(bounded("base", test.base...), bounded("head", test.head...), rules)
			if err != nil {
				t.Fatal(err)
			}
			r := c.Strategies[0].Results[0]
			if r.Metric != "wait_p99" || r.Verdict != test.want || c.Verdict != test.want {
				t.Errorf("%s, %s: %s, want %s: %+v", test.name, name, c.Headline(), test.want, r)
			}
			open := test.want == Undecided && test.name != "one bound among equals"
			if open && (r.P != nil || r.Low != nil || r.Needed != 0 || len(r.Warnings) == 0 ||
				!strings.Contains(c.Headline(), "which leaves the verdict open")) {
				t.Errorf("%s, %s: it does not say why: %s, %+v", test.name, name, c.Headline(), r)
			}
		}
	}
}
