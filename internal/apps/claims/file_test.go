package claims

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results"
)

const sound = `
number: 7
says: Locks are slow
rounds: 2
runs:
  one: --strategy spin --clients 2
expect:
  - what: how many
    figure: one.acq_per_s
    is: "<= 10"
    opposite: ">= 100"
qualified: they are not
tests: [strategies/spin]
`

func TestAClaimIsRead(t *testing.T) {
	t.Parallel()
	c, err := Parse("mine.yaml", []byte(sound))
	if err != nil {
		t.Fatal(err)
	}
	if c.Name() != "7" || c.Says != "Locks are slow" || c.Qualified != "they are not" ||
		c.Tests[0] != "strategies/spin" {
		t.Errorf("%+v", c)
	}
	if got, want := c.Command(c.Runs[0]), "lockbench --strategy spin --clients 2 --runs 2 --no-baselines"; got != want {
		t.Errorf("the command is %s, want %s", got, want)
	}
	if e := c.Expect[0]; e.Is.Value != 10 || e.Opposite.Value != 100 || e.Total || len(e.Figure.operands) != 1 {
		t.Errorf("%+v", e)
	}
	c.Number, c.Generators = 0, 20
	got := c.Command(c.Runs[0])
	if c.Name() != "mine" || !strings.HasSuffix(got, "  # 20 processes in one --session, merged") {
		t.Errorf("%s: %s", c.Name(), got)
	}
}

// All of them at once, each with its place.
func TestAClaimsFaultsAreNamed(t *testing.T) {
	t.Parallel()
	_, err := Parse("bad.yaml", []byte(`number: -1
sayz: something
rounds: many
runs:
  one: --strategy spin --clients 3
  one: --strategy spin
  a.b: --strategy 'spin'
  none: []
expect:
  - what: nothing
    figure: two.acq_per_s
    is: "<= 10"
  - figure: one.acq_per_s
    is: "<= 10"
  - what: wrong
    figure: one.acq_per_s
    is: around 10
    total: perhaps
  - words
  - {what: odd, figure: one.acq_per_s, is: "> 1", by: rounds}
  - {what: both, figure: one.acq_per_s, is: "> 1", by: median, opposite: "< 1"}
  - {what: equal, figure: one.acq_per_s, is: "== 1", by: interval}
  - {what: which, figure: "one.acq_per_s / best(one[a, b].acq_per_z)", by: interval}
  - {what: x, figure: one.acq_per_s, is: "> 1", counter: fair}
  - {what: x, figure: one.acq_per_s, is: "> 1", counter: {with: x}}
  - {what: x, figure: one.acq_per_s, is: "> 1", counter: {with: x, figure: one.acq_per_s}}
  - {what: x, figure: one.acq_per_s, is: "> 1", counter: {with: x, figure: one.overlaps}}
  - {what: x, figure: one.acq_per_s, is: "> 1", counter: {wiht: x, figure: none.speed}}
shows: [acq_per_s, colour]
about: []
generators: 1
`))
	if err == nil {
		t.Fatal("it was read")
	}
	lines := strings.Split(err.Error(), "\n")
	for _, want := range []string{
		"bad.yaml: number must be at least 1",
		`bad.yaml:2: there is no "sayz" in a claim, did you mean "says"?`,
		"bad.yaml:3: there must be a whole number, not \"many\"",
		`bad.yaml:6: there are two runs "one"`,
		`bad.yaml:7: the name of run "a.b" must have no brackets, dots, commas, slashes and blanks`,
		`bad.yaml:7: a command line here needs no quotes`,
		`bad.yaml:8: there must be a text`,
		`bad.yaml:11: two.acq_per_s: there is no run "two"`,
		`bad.yaml:13: expectation 2 needs what, figure and is`,
		`bad.yaml:16: is: "around 10" has no operator (=== <= >= == != < >)`,
		"bad.yaml:18: there must be true or false, not \"perhaps\"",
		"bad.yaml:19: there must be lines of what, figure, is and opposite, not \"words\"",
		`bad.yaml:20: by must be interval or median, not "rounds"`,
		`bad.yaml:21: by median goes with neither opposite nor total`,
		`bad.yaml:22: by interval takes <, <=, > or >=, not "== 1"`,
		`bad.yaml:23: "best(one[a, b].acq_per_z)": no metric "acq_per_z", did you mean "acq_per_s"?`,
		"bad.yaml:24: there must be lines of with and figure, not \"fair\"",
		`bad.yaml:25: a counter-case needs with and figure`,
		`bad.yaml:26: counter: "one.acq_per_s" is the figure itself`,
		`bad.yaml:27: counter: "one.overlaps" must be made of the same metrics as "one.acq_per_s"`,
		`bad.yaml:28: there is no "wiht" in a claim, did you mean "with"?`,
		`bad.yaml:28: "none.speed": no metric "speed"`,
		`bad.yaml: shows: no metric "colour"`,
		`bad.yaml:30: there must be a text`,
		`bad.yaml: generators must be at least 2`,
		`bad.yaml: it does not say what is claimed (says)`,
	} {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("it does not say %s:\n%v", want, err)
		}
	}
	for _, text := range []string{"", "- a list", "words", "says: x\n  y: z", "says: \"\\e\"\n\t- \x1b"} {
		_, err := Parse("bad.yaml", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), "bad.yaml:") || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A figure that has the same result whatever the lock does says nothing about it.
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
		alone := strings.Replace(sound, `    opposite: ">= 100"`, "", 1)
		text := strings.NewReplacer("one.acq_per_s", test.figure, "<= 10", test.is).Replace(alone)
		_, err := Parse("mine.yaml", []byte(text))
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s %s: %v", test.figure, test.is, err)
		case test.want != "" && (err == nil || err.Error() != "mine.yaml:9: "+test.want):
			t.Errorf("%s %s: %v, want %s", test.figure, test.is, err, test.want)
		}
	}
}

func TestTheClaimsThatComeWithLockbench(t *testing.T) {
	t.Parallel()
	all, err := All() // which refuses limits that no value can reach
	if err != nil {
		t.Fatal(err)
	}
	countered, err := WithCounterCases(all)
	if err != nil {
		t.Error(err)
	}
	const lacking = "test.yaml:9: how many: it has no counter-case (counter)"
	if _, err := WithCounterCases([]Claim{claim(t, sound)}); err == nil || err.Error() != lacking {
		t.Error(err)
	}
	seen := map[int]bool{}
	for _, c := range countered {
		if c.Number == 0 || seen[c.Number] {
			t.Errorf("%s has the number %d", c.File, c.Number)
		}
		seen[c.Number] = true
		for _, run := range c.Runs {
			if len(c.operands(run, false)) == 0 {
				t.Errorf("%s measures %s for nothing", c.File, run.Name)
			}
		}
		keeps := func(l limit, value float64) bool {
			kept, _ := l.Keeps(results.Figure{Value: value})
			return kept
		}
		// A verdict would go from one end to the other by a hair's breadth.
		for _, e := range c.Expect {
			there := e.Opposite.Text != ""
			if !there && !e.Total && e.Is.Operator != "==" {
				t.Errorf("%s: %s has no margin", c.File, e.What)
			}
			if there && keeps(e.Is, e.Opposite.Value) && keeps(e.Opposite, e.Is.Value) {
				t.Errorf("%s: %s can be both %s and %s", c.File, e.What, e.Is.Text, e.Opposite.Text)
			}
		}
	}
}
