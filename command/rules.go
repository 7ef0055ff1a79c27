package command

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/results/compare"
)

// gate holds the flags that compare and ab share: what counts as a difference, and where
// to write it.
type gate struct {
	rules   compare.Rules
	outputs []string
}

func newGate() *gate { return &gate{rules: compare.DefaultRules()} }

func (g *gate) register(set *pflag.FlagSet) {
	set.SortFlags = false
	set.Var(percentage(&g.rules.Threshold), "threshold", "least change that counts")
	set.Var(percentage(&g.rules.CountThreshold), "count-threshold", "the same for what is counted per acquisition and hardly varies: commands, round trips, bytes, attempts, wake-ups")
	set.Var(percentage(&g.rules.Alpha), "alpha", "probability of a false finding that is put up with")
	set.Var(&value{kind: "name", text: func() string { return g.rules.Primary }, set: g.setPrimary}, "metric", "the primary metric, which alone ends with 110, such as acq_per_s, wait_p99 or redis_cpu_per_acq")
	addSwitch(set, &g.rules.Strict, "strict", "", "end with 110 if any metric is worse")
	set.VarP(listValue("format", &g.outputs), "output", "o", "text, markdown or json, with =FILE to write a file; repeatable (default text)")
}

func (g *gate) setPrimary(name string) error {
	m, err := compare.ParseMetric(name)
	if err == nil {
		g.rules.Primary = m.Name
	}
	return err
}

// parse checks the flags and parses the outputs. It names every error.
func (g *gate) parse() ([]output[*compare.Comparison], error) {
	var problems []error
	if g.rules.Alpha == 0 {
		problems = append(problems, errors.New("--alpha must be more than 0%: nothing is ever that certain"))
	}
	outputs, err := parseOutputs(g.outputs, "text", formats[*compare.Comparison]{one: comparisonFormats()})
	return outputs, errors.Join(append(problems, err)...)
}

func comparisonFormats() map[string]writer[*compare.Comparison] {
	return map[string]writer[*compare.Comparison]{
		"text":     compare.WriteText,
		"markdown": func(w io.Writer, c *compare.Comparison, _ bool) error { return compare.WriteMarkdown(w, c) },
		"json":     func(w io.Writer, c *compare.Comparison, _ bool) error { return compare.WriteJSON(w, c) },
	}
}

// judgement returns the error of a comparison; nil if it is not worse. Undecided is an error
// for pairs, which are measured for a verdict, but for existing reports only if they cannot
// be compared.
func judgement(c *compare.Comparison) error {
	switch {
	case len(c.Broken) > 0:
		return &exit{ExitSafety, fmt.Errorf("a claimed guarantee did not hold in the head: %s", c.Broken[0])}
	case c.Verdict == compare.Worse:
		return &exit{ExitRegression, fmt.Errorf("regression: the head is %s", c.Headline())}
	case c.Verdict == compare.Undecided && (c.Method == compare.MethodPaired || !c.Comparable()):
		return &exit{ExitInvalid, errors.New(c.Headline())}
	}
	return nil
}
