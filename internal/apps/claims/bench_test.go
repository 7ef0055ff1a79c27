package claims

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/baselines"
	"github.com/lockbench/lockbench/strategies/blpop"
	"github.com/lockbench/lockbench/strategies/polled"
	"github.com/lockbench/lockbench/strategies/redisson"
)

func init() {
	strategies.RegisterStrategy(append(polled.Strategies(), redisson.Strategies()...)...)
	strategies.RegisterStrategy(append(baselines.Strategies(), blpop.Strategy())...)
}

// pretended is a Bench that measures nothing. Its Run returns a report of two rounds, in which the acquisitions per
// second of a strategy equal the length of the strategy's name.
type pretended struct {
	bench *Bench
	lines []string
	// change alters the report that Run returns. err is the error that Run returns with the report.
	change func(*results.Report)
	err    error
}

func pretend() *pretended {
	p := &pretended{change: func(*results.Report) {}}
	p.bench = &Bench{
		Plan: func(words []string) (lockbench.Plan, error) {
			variants, err := strategies.ParseVariants(words[1])
			return lockbench.Plan{
				Strategies: variants, Generators: lockbench.Generators{Session: strings.Join(words, " ")},
			}, err
		},
		Run: func(_ context.Context, plan lockbench.Plan) (*results.Report, error) {
			p.lines = append(p.lines, plan.Generators.Session)
			report := &results.Report{Redis: results.Redis{Source: "process"}}
			for round := 1; round <= 2; round++ {
				for _, v := range plan.Strategies {
					run := results.Run{Strategy: v.Name(), Round: round}
					run.Speed.PerSecond = float64(len(v.Name()))
					report.Runs = append(report.Runs, run)
				}
			}
			p.change(report)
			return report, p.err
		},
	}
	return p
}

func claim(t *testing.T, text string) Claim {
	t.Helper()
	c, err := Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const faster = `
number: %d
says: pubsub is longer than spin
rounds: 2
runs: {both: "--strategy spin,pubsub"}
expect:
  - {what: lengths, figure: "both[pubsub].acq_per_s / both[spin].acq_per_s", is: ">= 1.4", opposite: "<= 1"}
`

func unconfirmed(c Result) bool { return c.Verdict != Confirmed }

func two(t *testing.T) []Claim {
	return []Claim{claim(t, fmt.Sprintf(faster, 1)), claim(t, fmt.Sprintf(faster, 2))}
}

func TestClaimsShareTheirRuns(t *testing.T) {
	t.Parallel()
	p := pretend()
	document, err := p.bench.Test(t.Context(), two(t))
	if err != nil || len(p.lines) != 1 {
		t.Fatalf("%v, it measured %q", err, p.lines)
	}
	if document.Redis.Source != "process" || len(document.Claims) != 2 {
		t.Fatalf("%+v", document)
	}
	for _, c := range document.Claims {
		if c.Verdict != Confirmed || c.Runs[0].Command != "lockbench --strategy spin,pubsub --runs 2 --no-baselines" {
			t.Errorf("%+v", c)
		}
		if values := c.Figures[0].Values; len(values) != 2 || values[0].Value != 1.5 || values[1].Value != 1.5 {
			t.Errorf("values %v", values)
		}
	}
}

func TestInvalidRunsDecideNoClaim(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change  func(*results.Report)
		err     error
		invalid bool
		why     string
	}{
		"an invalid run": {
			func(r *results.Report) { r.Runs[3].Invalid = results.PlainTexts("generator saturated") }, nil,
			true, "both: pubsub is INVALID in round 2: generator saturated",
		},
		"a strategy left out": {func(r *results.Report) {
			r.Runs = slices.DeleteFunc(r.Runs, func(r results.Run) bool { return r.Strategy == "pubsub" })
			r.LeftOut = []results.LeftOut{{Strategy: "pubsub", Why: results.PlainText("no time")}}
		}, nil, false, "both: pubsub was left out: no time"},
		"an error": {
			func(r *results.Report) { r.Runs = r.Runs[:3] }, errors.New("bad\nluck"), false, "both: bad luck",
		},
		"no report": {func(r *results.Report) { r.Runs = nil }, errors.New("bad luck"), false, "both: bad luck"},
	} {
		p := pretend()
		p.change, p.err = test.change, test.err
		document, err := p.bench.Test(t.Context(), []Claim{claim(t, fmt.Sprintf(faster, 1))})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		c := document.Claims[0]
		if c.Verdict != Inconclusive || !slices.Contains(c.Why, test.why) ||
			(len(document.Invalid()) > 0) != test.invalid {
			t.Errorf("%s: %s, %q, invalid %v", name, c.Verdict, c.Why, document.Invalid())
		}
	}
}

func TestUnrelatedFailuresDoNotAffectClaim(t *testing.T) {
	t.Parallel()
	p := pretend()
	p.err = errors.New("blpop failed")
	p.change = func(r *results.Report) {
		r.LeftOut = []results.LeftOut{{Strategy: "blpop", Why: results.PlainText("it failed")}}
		for i := range r.Runs {
			if r.Runs[i].Strategy == "fair" {
				r.Runs[i].Invalid = results.PlainTexts("generator saturated")
			}
		}
		r.Runs = slices.DeleteFunc(r.Runs, func(r results.Run) bool { return r.Strategy == "blpop" })
	}
	text := strings.Replace(fmt.Sprintf(faster, 1), "spin,pubsub", "spin,pubsub,fair,blpop", 1)
	document, err := p.bench.Test(t.Context(), []Claim{claim(t, text)})
	if c := document.Claims[0]; err != nil || c.Verdict != Confirmed || len(c.Why) > 0 || len(document.Invalid()) > 0 {
		t.Errorf("%v, %+v", err, c)
	}
}

// Three claims need the same runs, one of which is invalid at first. The runs must be measured again exactly once,
// although only the second and the third claim set a limit.
func TestInvalidRunsAreRepeatedOnce(t *testing.T) {
	t.Parallel()
	strict := fmt.Sprintf(faster, 1)
	before, _, _ := strings.Cut(strict, "expect:")
	lenient := before + `expect: [{what: it, figure: "both[spin].acq_per_s", by: interval}]`
	p := pretend()
	p.change = func(r *results.Report) {
		if len(p.lines) == 1 {
			r.Runs[0].Invalid = results.PlainTexts("generator saturated")
		}
	}
	document, err := p.bench.Test(t.Context(), []Claim{claim(t, lenient), claim(t, strict), claim(t, strict)})
	if err != nil || len(p.lines) != 2 || slices.ContainsFunc(document.Claims[1:], unconfirmed) {
		t.Errorf("%v, measured %q, %+v", err, p.lines, document.Claims)
	}
}

func TestClaimsEndWithoutRedis(t *testing.T) {
	t.Parallel()
	p := pretend()
	p.err = fmt.Errorf("%w: gone", lockbench.ErrUnreachable)
	other := strings.Replace(fmt.Sprintf(faster, 2), "spin,pubsub", "pubsub,spin", 1)
	two := strings.Replace(fmt.Sprintf(faster, 1), "spin,pubsub\"", "spin,pubsub\", other: \"--strategy fair\"", 1)
	document, err := p.bench.Test(t.Context(), []Claim{claim(t, two), claim(t, other)})
	if !errors.Is(err, lockbench.ErrUnreachable) || len(document.Claims) != 1 || len(p.lines) != 1 {
		t.Errorf("%v, %d claims, measured %q", err, len(document.Claims), p.lines)
	}
}

func TestInterruptedClaimsKeepResults(t *testing.T) {
	t.Parallel()
	p := pretend()
	ctx, cancel := context.WithCancel(t.Context())
	other := strings.Replace(fmt.Sprintf(faster, 2), "spin,pubsub", "pubsub,spin", 1)
	p.change = func(*results.Report) {
		if len(p.lines) == 2 {
			cancel()
		}
	}
	document, err := p.bench.Test(ctx, []Claim{claim(t, fmt.Sprintf(faster, 1)), claim(t, other)})
	if err != nil || !document.Interrupted || len(document.Claims) != 1 {
		t.Errorf("%v, %+v", err, document)
	}
}

// The speeds are the lengths of the names: pubsub ÷ spin is 6 ÷ 4 = 1.5, and fair ÷ spin is 4 ÷ 4 = 1.
const countered = `
says: pubsub is longer than spin
rounds: 2
runs: {both: "--strategy spin,pubsub"}
counter-runs: {other: "--strategy fair,noop"}
expect:
  - what: lengths
    figure: both[pubsub].acq_per_s / both[spin].acq_per_s
    is: ">= 1.4"
    opposite: "<= 1"
    counter: {with: fair, figure: "other[fair].acq_per_s / both[spin].acq_per_s"}
`

// againstCounterCase tests the claim in text and its counter-case with p, and returns the resulting Document.
func againstCounterCase(t *testing.T, p *pretended, text string) *Document {
	t.Helper()
	d, err := p.bench.Test(t.Context(), []Claim{claim(t, text).Countered(true)})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestCounterCases(t *testing.T) {
	t.Parallel()
	with := func(replaced ...string) string { return strings.NewReplacer(replaced...).Replace(countered) }
	for name, test := range map[string]struct {
		text          string
		without, with results.Verdict
		asItMust      bool
	}{
		"the other side":     {countered, Held, Contradicted, true},
		"the same side":      {with("other[fair]", "other[fenced]", "fair,noop", "fair,fenced"), Held, Held, false},
		"refuted, and held":  {with(`">= 1.4"`, `"<= 1"`, `"<= 1"`, `">= 1.4"`), Contradicted, Held, true},
		"between, and not":   {with(">= 1.4", ">= 2"), Partly, Contradicted, true},
		"neither of the two": {with(">= 1.4", ">= 3", `"<= 1"`, `"<= 0.5"`), Partly, Partly, false},
		"refuted both times": {with(">= 1.4", ">= 3", `"<= 1"`, `"<= 2"`), Contradicted, Contradicted, false},
		"no opposite":        {with(`    opposite: "<= 1"`+"\n", ""), Held, Contradicted, true},
	} {
		d := againstCounterCase(t, pretend(), test.text)
		f := d.Claims[0].Figures[0]
		if f.Verdict != test.without || f.Counter.Verdict != test.with || f.Counter.AsItMust != test.asItMust {
			t.Errorf("%s: %+v, %+v", name, f, f.Counter)
		}
		if all, failed := d.CounterCases(); all != 1 || len(failed) == 0 != test.asItMust {
			t.Errorf("%s: %d counter-cases, %q failed", name, all, failed)
		}
	}
}

// Without counter-cases, the runs that only counter-cases need must not be measured.
func TestCounterCasesAreMeasuredOnlyOnRequest(t *testing.T) {
	t.Parallel()
	p := pretend()
	d, err := p.bench.Test(t.Context(), []Claim{claim(t, countered).Countered(false)})
	if err != nil || len(p.lines) != 1 || d.Claims[0].Figures[0].Counter != nil {
		t.Errorf("%v, it measured %q: %+v", err, p.lines, d)
	}
}

func TestInvalidCounterCaseFails(t *testing.T) {
	t.Parallel()
	p := pretend()
	p.change = func(r *results.Report) {
		if r.Runs[0].Strategy == "fair" {
			r.Runs[0].Invalid = results.PlainTexts("generator saturated")
		}
	}
	d := againstCounterCase(t, p, countered)
	if _, failed := d.CounterCases(); len(failed) != 1 || len(d.Claims[0].Why) == 0 || len(p.lines) != 3 {
		t.Errorf("%q failed, %+v, measured %q", failed, d.Claims[0], p.lines)
	}
}
