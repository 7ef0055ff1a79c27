package claims

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
)

// A figure that comes out the same whatever the lock does says nothing of it.
func TestEveryClaimHasCounterCases(t *testing.T) {
	t.Parallel()
	all, err := All() // which refuses limits that no value can reach
	if err != nil {
		t.Fatal(err)
	}
	if err := CountersMissing(all); err != nil {
		t.Error(err)
	}
	for _, c := range all {
		used := map[string]bool{}
		for _, e := range c.expect {
			if e.counter == nil {
				continue
			}
			for _, o := range e.counter.Figure.operands {
				used[o.run] = true
			}
		}
		for _, run := range c.CounterRuns {
			if !used[run.Name] {
				t.Errorf("%s measures %s for no counter-case", c.File, run.Name)
			}
		}
	}
}

func TestLimitsThatNothingCanReach(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ figure, is, want string }{
		{"one.overlaps", "< 0", "is: no value of one.overlaps can be < 0"},
		{"one.overlaps", ">= 0", "is: every value of one.overlaps is >= 0"},
		{"one.overlaps", "> -1", "is: every value of one.overlaps is > -1"},
		{"one.overlaps", "== 0.5", "is: no value of one.overlaps can be == 0.5"},
		{"one.overlaps", "!= 0.5", "is: every value of one.overlaps is != 0.5"},
		{"one.acq_per_s / one.acq_per_s", "<= -1", "is: no value of one.acq_per_s / one.acq_per_s can be <= -1"},
		{"one.overlaps", "== 0", ""},
		{"one.overlaps", ">= 1", ""},
		{"one.overlaps", "< 1", ""},
		{"one.overlaps", "> 0", ""},
		{"one.overtaken - one.overtaken", "<= -5", ""},
		{"one.wait_p99", "<= 1s", ""},
	} {
		_, err := Parse("mine.yaml", []byte(`{says: x, runs: {one: "--strategy spin"}, expect: [{what: y, figure: "`+test.figure+`", is: "`+test.is+`"}]}`))
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s %s: %v", test.figure, test.is, err)
		case test.want != "" && (err == nil || err.Error() != "mine.yaml:1: "+test.want):
			t.Errorf("%s %s: %v, want %s", test.figure, test.is, err, test.want)
		}
	}
}

// The lengths of names: 6 ÷ 4 is 1.5, 4 ÷ 4 is 1.
const countered = `
says: pubsub is longer than spin
rounds: 2
runs: {both: "--strategy spin,pubsub"}
counter-runs: {other: "--strategy fair,noop"}
expect:
  - {what: lengths, figure: "both[pubsub].acq_per_s / both[spin].acq_per_s", is: ">= 1.4", opposite: "<= 1", counter: {with: fair, figure: "other[fair].acq_per_s / both[spin].acq_per_s"}}
`

func TestCounterCases(t *testing.T) {
	t.Parallel()
	same := strings.NewReplacer("other[fair]", "other[fenced]", "fair,noop", "fair,fenced").Replace(countered)
	for name, test := range map[string]struct {
		text          string
		without, with Outcome
		asItMust      bool
	}{
		"the other side":      {countered, Held, Contradicted, true},
		"the same side":       {same, Held, Held, false},
		"refuted, and held":   {strings.NewReplacer(`">= 1.4"`, `"<= 1"`, `"<= 1"`, `">= 1.4"`).Replace(countered), Contradicted, Held, true},
		"between, and not":    {strings.Replace(countered, ">= 1.4", ">= 2", 1), Partly, Contradicted, true},
		"neither of the two":  {strings.NewReplacer(">= 1.4", ">= 3", `"<= 1"`, `"<= 0.5"`).Replace(countered), Partly, Partly, false},
		"refuted both times":  {strings.NewReplacer(">= 1.4", ">= 3", `"<= 1"`, `"<= 2"`).Replace(countered), Contradicted, Contradicted, false},
		"without an opposite": {strings.Replace(countered, `, opposite: "<= 1"`, "", 1), Held, Contradicted, true},
	} {
		all := Countered([]Claim{claim(t, test.text)})
		d, err := pretend().bench.Test(t.Context(), all)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		cases := CounterCases(d).Cases
		if len(cases) != 1 || cases[0].Without.Outcome != test.without || cases[0].With.Outcome != test.with || cases[0].AsItMust != test.asItMust {
			t.Errorf("%s: %+v", name, cases)
		}
	}
}

// What is only for counter-cases is not measured without them.
func TestClaimsAloneDoNotMeasureCounterCases(t *testing.T) {
	t.Parallel()
	p := pretend()
	if _, err := p.bench.Test(t.Context(), []Claim{claim(t, countered)}); err != nil || len(p.lines) != 1 {
		t.Errorf("%v, it measured %q", err, p.lines)
	}
}

func TestACounterCaseThatCannotBeTrustedFails(t *testing.T) {
	t.Parallel()
	p := pretend()
	p.change = func(r *results.Report) {
		if r.Runs[0].Strategy == "fair" {
			r.Runs[0].Invalid = []string{"generator saturated"}
		}
	}
	d, err := p.bench.Test(t.Context(), Countered([]Claim{claim(t, countered)}))
	cases := CounterCases(d)
	if err != nil || cases.Cases[0].AsItMust || len(cases.notes()) == 0 || len(p.lines) != 3 {
		t.Errorf("%v, %+v, measured %q", err, cases, p.lines)
	}
}

func TestFaultsOfCounterCases(t *testing.T) {
	t.Parallel()
	for counter, want := range map[string]string{
		"fair":                                     "mine.yaml:1: a counter-case is lines of with and figure",
		"{with: x}":                                "mine.yaml:1: a counter-case needs with and figure",
		"{with: x, figure: one.speed}":             `mine.yaml:1: counter: "one.speed": no metric "speed"`,
		"{with: x, figure: one.acq_per_s}":         `mine.yaml:1: counter: "one.acq_per_s" is the figure itself`,
		"{with: x, figure: one.overlaps}":          `mine.yaml:1: counter: "one.overlaps" is to be made of the same metrics as "one.acq_per_s"`,
		"{with: x, figure: nowhere.acq_per_s}":     `mine.yaml:1: nowhere.acq_per_s: there is no run "nowhere"`,
		"{wiht: x, figure: 'one[spin].acq_per_s'}": `mine.yaml:1: there is no "wiht" in a claim, did you mean "with"?`,
	} {
		_, err := Parse("mine.yaml", []byte(`{says: x, runs: {one: "--strategy spin"}, expect: [{what: y, figure: one.acq_per_s, is: ">= 1", counter: `+counter+`}]}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", counter, err, want)
		}
	}
	missing := CountersMissing([]Claim{claim(t, sound)})
	if missing == nil || missing.Error() != "test.yaml:8: how many: it has no counter-case (counter)" {
		t.Error(missing)
	}
}

func TestCounterCasesAreWritten(t *testing.T) {
	t.Parallel()
	d := tested()
	d.Claims = d.Claims[:3]
	for i := range d.Claims {
		with := d.Claims[i].Figures[0]
		with.What, with.Outcome = "a lock | that is broken", Contradicted
		d.Claims[i].Figures = []FigureResult{d.Claims[i].Figures[0], with}
	}
	c := CounterCases(d)
	for file, write := range map[string]func(*bytes.Buffer) error{
		"counter.txt":  func(b *bytes.Buffer) error { return WriteCounterTable(b, c, false) },
		"counter.json": func(b *bytes.Buffer) error { return WriteCounterJSON(b, c) },
		"counter.md":   func(b *bytes.Buffer) error { return WriteCounterMarkdown(b, c) },
	} {
		var written bytes.Buffer
		if err := write(&written); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "testdata/"+file, written.String())
	}
	if failed := c.Failed(); len(failed) != 1 || failed[0].Claim != "mine" {
		t.Errorf("failed: %+v", failed)
	}
}
