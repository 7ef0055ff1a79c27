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
	if c.Name() != "7" || c.Says != "Locks are slow" || c.Rounds != 2 || c.Qualified != "they are not" || !slices.Equal(c.Tests, []string{"strategies/spin"}) {
		t.Errorf("%+v", c)
	}
	if words := strings.Join(c.Words(c.Runs[0]), " "); words != "--strategy spin --clients 2 --runs 2 --no-baselines" {
		t.Error(words)
	}
	if e := c.expect[0]; e.Figure.Text != "one.acq_per_s" || e.Is.Text != "<= 10" || e.Opposite.Text != ">= 100" || e.Total {
		t.Errorf("%+v", e)
	}
	c.Number = 0
	if c.Name() != "mine" {
		t.Errorf("without a number it is called %s", c.Name())
	}
}

// All of them at once, each where it stands.
func TestAClaimsFaultsAreNamed(t *testing.T) {
	t.Parallel()
	_, err := Parse("bad.yaml", []byte(`number: 0
sayz: something
rounds: many
runs:
  one: --strategy spin --clients 3
  one: --strategy spin
  a.b: --strategy 'spin'
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
shows: [acq_per_s, colour]
about: []
`))
	if err == nil {
		t.Fatal("it was read")
	}
	lines := strings.Split(err.Error(), "\n")
	for _, want := range []string{
		`bad.yaml:1: it is to be at least 1, not 0`,
		`bad.yaml:2: there is no "sayz" in a claim, did you mean "says"?`,
		`bad.yaml:3: "many" is not a whole number`,
		`bad.yaml:6: there are two runs "one"`,
		`bad.yaml:7: a run's name "a.b" is to have no brackets, dots and blanks`,
		`bad.yaml:7: a command line here needs no quotes`,
		`bad.yaml:9: two.acq_per_s: there is no run "two"`,
		`bad.yaml:12: an expectation needs what, figure and is`,
		`bad.yaml:14: is: "around 10" has no operator (=== <= >= == != < >)`,
		`bad.yaml:14: total is true or false, not "perhaps"`,
		`bad.yaml:18: an expectation is lines of what, figure, is and opposite`,
		`bad.yaml:19: by is interval or median, not "rounds"`,
		`bad.yaml:20: by median goes with neither opposite nor total`,
		`bad.yaml:21: by interval takes <, <=, > or >=, not "== 1"`,
		`bad.yaml:22: figure: "one[a, b].acq_per_z": no metric "acq_per_z", did you mean "acq_per_s"?`,
		`bad.yaml:23: no metric "colour"`,
		`bad.yaml:24: there is to be a text`,
		`bad.yaml:1: it does not say what is claimed (says)`,
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("it does not say %s", want)
		}
	}
	if len(lines) != 18 {
		t.Errorf("%d faults:\n%v", len(lines), err)
	}
	for _, text := range []string{"", "- a list", "says: x\n  y: z"} {
		if _, err := Parse("bad.yaml", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), "bad.yaml:") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTheClaimsThatComeWithLockbench(t *testing.T) {
	t.Parallel()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, c := range all {
		if c.Number == 0 || seen[c.Number] {
			t.Errorf("%s has the number %d", c.File, c.Number)
		}
		seen[c.Number] = true
		used := map[string]bool{}
		for _, e := range c.expect {
			for _, o := range e.Figure.operands {
				used[o.run] = true
			}
		}
		for _, run := range c.Runs {
			if !used[run.Name] {
				t.Errorf("%s measures %s for nothing", c.File, run.Name)
			}
		}
		keeps := func(l results.Limit, value float64) bool {
			kept, _ := l.Keeps(results.Figure{Value: value})
			return kept
		}
		// A verdict would go from one end to the other by a hair's breadth.
		for _, e := range c.expect {
			if e.Opposite == nil && !e.Total && e.Is.Operator != "==" {
				t.Errorf("%s: %s has no margin", c.File, e.What)
			}
			if e.Opposite != nil && keeps(e.Is, e.Opposite.Value) && keeps(*e.Opposite, e.Is.Value) {
				t.Errorf("%s: %s can be both %s and %s", c.File, e.What, e.Is.Text, e.Opposite.Text)
			}
		}
	}
}

func TestARunOfSeveralProcesses(t *testing.T) {
	t.Parallel()
	text := strings.Replace(sound, "one: --strategy spin --clients 2", "one: {line: --strategy spin --clients 2, generators: 20}", 1)
	c, err := Parse("mine.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if r := c.Runs[0]; r.Generators != 20 || c.Command(r) != "lockbench --strategy spin --clients 2 --runs 2 --no-baselines  # 20 processes in one --session, merged" {
		t.Errorf("%+v: %s", r, c.Command(r))
	}
	for wrong, want := range map[string]string{
		"one: {line: --strategy spin, generators: 1}":   "mine.yaml:6: generators are at least 2",
		"one: {line: --strategy spin, generators: few}": `mine.yaml:6: "few" is not a whole number`,
		"one: {generators: 2}":                          "mine.yaml:6: run one has no line",
		"one: {line: --strategy spin, processes: 2}":    `mine.yaml:6: there is no "processes"`,
	} {
		if _, err := Parse("mine.yaml", []byte(strings.Replace(sound, "one: --strategy spin --clients 2", wrong, 1))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", wrong, err, want)
		}
	}
}
