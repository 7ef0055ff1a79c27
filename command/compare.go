package command

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results/compare"
)

func (a *app) compare() *cobra.Command {
	g, force := newGate(), false
	cmd := &cobra.Command{
		Use:   "compare BASE HEAD",
		Short: "Compare two sets of reports: better or worse?",
		Long: "Compare two sets of reports written by lockbench -o json=FILE. BASE and HEAD are each a file, a\n" +
			"directory or a quoted glob. A report is a session and counts once, with the median of its runs. A\n" +
			"verdict needs 4 sessions of each side, more with several strategies, and an interval needs 6. With\n" +
			"fewer sessions, or with sessions that scatter too much, the verdict is undecided and names the\n" +
			"required number. Only sessions recorded in turns, as record does, can end with 110: if one side\n" +
			"was recorded after the other, the machine may have changed. To compare two builds on this machine\n" +
			"use ab, which measures them in pairs.\n\n" +
			"The exit code is 110 if HEAD is worse by the primary metric (--metric), by any metric with\n" +
			"--all-metrics, or if it needs more commands or round trips; 111 if HEAD broke a guarantee; 112 if\n" +
			"no run can be trusted, or if the verdict is undecided and --strict is set; else 0.",
		Example: "  for i in 1 2 3 4; do for b in before after; do \\\n    ./$b -s pubsub -o json=$b-$i.json; done; done\n" +
			"  lockbench compare 'before-*.json' 'after-*.json'\n" +
			"  lockbench compare main/ mine/ --metric wait_p99 \\\n    --strict -o markdown=comment.md",
		Args: cobra.ArbitraryArgs,
	}
	g.register(cmd.Flags())
	cmd.Flags().BoolVar(&force, "force", false, "compare although workload, machine or Redis differ")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		outputs := g.outputs.all(false)
		needed := twoArguments(args, "BASE and HEAD are needed, each a file, a directory or a quoted glob")
		clash := check(outputs, allReports(args)...)
		if err := a.input(cmd.Flags()).refuse(g.validate(), needed, clash); err != nil {
			return err
		}
		base, head := compare.Side{Name: untrusted.Printable(args[0])}, compare.Side{Name: untrusted.Printable(args[1])}
		var baseErr, headErr error
		base.Reports, baseErr = a.readFiles(args[:1], odd)
		head.Reports, headErr = a.readFiles(args[1:], odd)
		if err := errors.Join(baseErr, headErr); err != nil {
			return err
		}
		if different := compare.Differences(base, head); len(different) > 0 && !force {
			return refusal(different)
		}
		c, err := compare.Unpaired(base, head, g.rules)
		if err != nil {
			return err
		}
		if err := saveAll(a, outputs, c, false); err != nil {
			return err
		}
		return judgement(c)
	}
	return cmd
}

// refusal returns the error that lists the conditions in which the two sides differ.
func refusal(different []compare.Difference) error {
	problems := []error{errors.New("base and head were measured under different conditions; --force compares them anyway")}
	for _, d := range different {
		problems = append(problems, errors.New(d.String()))
	}
	return errors.Join(problems...)
}

// twoArguments returns an error unless there are exactly two arguments. The error consists of the parameter what and
// the number of arguments.
func twoArguments(args []string, what string) error {
	if len(args) == 2 {
		return nil
	}
	return fmt.Errorf("%s; %d given", what, len(args))
}

// gate holds the flags that compare and ab share: the rules of the verdict and the outputs of the comparison.
type gate struct {
	rules   compare.Rules
	outputs outputs[*compare.Comparison]
}

func newGate() *gate {
	return &gate{compare.DefaultRules(), outputs[*compare.Comparison]{
		usual: "text", formats: map[string]writer[*compare.Comparison]{
			"text": compare.WriteText, "markdown": plain(compare.WriteMarkdown), "json": plain(compare.WriteJSON),
			"junit": plain(compare.WriteJUnit),
		},
	}}
}

func (g *gate) register(set *pflag.FlagSet) {
	set.SortFlags = false
	set.Var((*percent)(&g.rules.Threshold), "threshold", "smallest change that counts as a difference")
	set.Var((*percent)(&g.rules.CountThreshold), "count-threshold", "smallest change of counts per acquisition, "+
		"which hardly vary: commands, round trips, bytes, attempts, wake-ups")
	set.Var((*percent)(&g.rules.Alpha), "alpha", "significance level: accepted false-positive rate")
	set.Func("metric", "`name` of the primary metric, which decides with commands and round trips: "+
		"acq_per_s, wait_p99, redis_cpu_per_acq and others (default "+g.rules.Primary+")", func(name string) error {
		m, err := compare.ParseMetric(name)
		if err == nil {
			g.rules.Primary = m.Name
		}
		return err
	})
	set.BoolVar(&g.rules.AllMetrics, "all-metrics", false, "let every metric decide the verdict, not only the primary one")
	set.BoolVar(&g.rules.Strict, "strict", false, "exit code 112 if the verdict is undecided, or if a metric that "+
		"decides could have missed a change for the worse as large as the threshold")
	g.outputs.register(set)
}

// percent is the value of a flag such as 5% or 0.05. It rejects a bare 5, which could mean 5 % or 500 %.
type percent float64

func (p *percent) String() string { return strconv.FormatFloat(float64(*p)*100, 'g', 4, 64) + "%" }
func (p *percent) Type() string   { return "percent" }

// Set parses a value such as 5% or 0.05. The value must be at least 0 and less than 1.
func (p *percent) Set(text string) error {
	digits, percents := strings.CutSuffix(strings.TrimSpace(text), "%")
	number, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if percents {
		number /= 100
	}
	switch {
	case err != nil || number != number:
		return fmt.Errorf("%q is not a percentage such as 5%%", text)
	case !percents && number >= 1:
		return fmt.Errorf("%q means %g %%: write %s%% for a percentage", text, number*100, digits)
	case number < 0 || number >= 1:
		return fmt.Errorf("%q is not a percentage from 0%% to 99%%", text)
	}
	*p = percent(number)
	return nil
}

func (g *gate) validate() error {
	if g.rules.Alpha == 0 {
		return errors.New("--alpha must be more than 0%, such as 5%")
	}
	return nil
}

// judgement returns the error of a comparison with its exit code. A head that is worse or broke a guarantee is an
// error. A verdict that is undecided only because the sessions vary too much is an error only with --strict. Any other
// undecided verdict is an error if ab measured the pairs, because their purpose is a verdict, or if the reports have no
// metric in common. With --strict, judgement also returns an error if a change as large as the threshold could have
// been missed. In all other cases it returns nil.
func judgement(c *compare.Comparison) error {
	switch {
	case len(c.Broken) > 0:
		return &exit{ExitSafety, fmt.Errorf("a guarantee that the head claims did not hold: %s", c.Broken[0].Text)}
	case c.Verdict == compare.Worse:
		return &exit{ExitRegression, fmt.Errorf("regression: the head is %s", c.Headline())}
	case c.Verdict == compare.Undecided && !c.Scattered() && (c.Method == compare.MethodPaired || !c.Comparable()),
		c.Verdict == compare.Undecided && c.Scattered() && c.Rules.Strict:
		return &exit{ExitInvalid, errors.New(c.Headline())}
	case c.Rules.Strict && c.Insensitive() != "":
		return &exit{ExitInvalid, fmt.Errorf("--strict: a change for the worse as large as the threshold could "+
			"have been missed; measure longer or more often: %s", c.Insensitive())}
	}
	return nil
}
