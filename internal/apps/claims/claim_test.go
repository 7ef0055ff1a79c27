package claims

import (
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

func TestParseClaim(t *testing.T) {
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
	if e := c.Expect[0]; e.is.Value != 10 || e.opposite.Value != 100 || e.Total || len(e.Figure.operands) != 1 {
		t.Errorf("%+v", e)
	}
	c.Number, c.Generators = 0, 20
	got := c.Command(c.Runs[0])
	if c.Name() != "mine" || !strings.HasSuffix(got, " --generators 20") {
		t.Errorf("%s: %s", c.Name(), got)
	}
}

func TestParseClaimErrors(t *testing.T) {
	t.Parallel()
	figure := func(with string) string { return `figure: one.acq_per_s` + "\n    " + with }
	for _, test := range []struct{ instead, with, want string }{
		{"says:", "sayz:", "line 3: field sayz not found in type claims.Claim"},
		{"rounds: 2", "rounds: many", "line 4: cannot unmarshal !!str `many` into int"},
		{"rounds: 2", "rounds: 0", "rounds must be at least 1"},
		{"rounds: 2", "generators: 1", "generators must be at least 2"},
		{"one: --strategy spin", "one: x\n  one: y", `mapping key "one" already defined`},
		{"one: --strategy spin --clients 2", "one: []", "line 6: cannot unmarshal !!seq into claims.Text"},
		{"says: Locks are slow", "about: x", `a claim needs the keys "says", "runs" and "expect"; missing: "says"`},
		{"rounds: 2", "rounds: 0\ngenerators: 1", "bad.yaml: rounds must be at least 1\nbad.yaml: generators must be"},
		{"tests: [strategies/spin]", "shows: [colour]", `shows: no metric "colour"`},
		{"one.acq_per_s", "two.acq_per_s", `expectation 1: two.acq_per_s: the claim has no run "two"`},
		{"what:", "about:", "line 8: field about not found in type claims.expectation"},
		{`is: "<= 10"`, "total: false", `expectation 1: the keys "what", "figure" and "is" (or "by") are required`},
		{"<= 10", "around 10", `how many: "around 10" has no operator (=== <= >= == != < >)`},
		{"one.acq_per_s", "one.acq_per_z", `"one.acq_per_z": no metric "acq_per_z", did you mean "acq_per_s"?`},
		{"figure: one.acq_per_s", figure("by: rounds"), `"by" must be interval or median, not "rounds"`},
		{"figure: one.acq_per_s", figure("by: median"), `"by: median" cannot be combined with opposite or total`},
		{
			`is: "<= 10"` + "\n    opposite: ", "by: interval\n    is: \"== 1\" # ",
			`"by: interval" needs a limit with <, <=, > or >=, not "== 1"`,
		},
		{"figure: one.acq_per_s", figure("counter: {with: x}"), `a counter-case needs the keys "with" and "figure"`},
		{
			"figure: one.acq_per_s", figure("counter: {with: x, figure: one.overlaps}"),
			`counter: "one.overlaps" must use the same metrics and operator as "one.acq_per_s"`,
		},
		{sound, "", "the file is empty"},
		{sound, sound + "---\n" + sound, "there is text after the end of the claim"},
		{sound, "- a list", "cannot unmarshal !!seq into claims.Claim"},
		{sound, "says: x\n  y: z", "line 2: mapping values are not allowed in this context"},
		{sound, "says: \"\\e\"\n\t- \x1b", `control characters are not allowed`},
	} {
		_, err := Parse("bad.yaml", []byte(strings.Replace(sound, test.instead, test.with, 1)))
		if err == nil || !strings.HasPrefix(err.Error(), "bad.yaml: ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.with, err, test.want)
		}
	}
}

func TestBuiltInClaims(t *testing.T) {
	t.Parallel()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, c := range all {
		c = c.Countered(true)
		if c.Number == 0 || seen[c.Number] {
			t.Errorf("%s has the number %d", c.File, c.Number)
		}
		seen[c.Number] = true
		for _, run := range c.Runs {
			if len(c.operands(run, false)) == 0 {
				t.Errorf("%s measures %s for nothing", c.File, run.Name)
			}
		}
		keeps := func(l results.Limit, value float64) bool {
			kept, _ := l.Keeps(results.Figure{Value: value})
			return kept
		}
		// Without a gap between the limits Is and Opposite, a tiny change of a figure would change the verdict from confirmed
		// to refuted.
		for _, e := range c.Expect {
			if e.Counter == nil {
				t.Errorf("%s: %s has no counter-case", c.File, e.What)
			}
			if e.Opposite == "" && !e.Total && e.is.Operator != "==" {
				t.Errorf("%s: %s has no margin", c.File, e.What)
			}
			if e.Opposite != "" && keeps(e.is, e.opposite.Value) && keeps(e.opposite, e.is.Value) {
				t.Errorf("%s: %s can be both %s and %s", c.File, e.What, e.Is, e.Opposite)
			}
		}
	}
}
