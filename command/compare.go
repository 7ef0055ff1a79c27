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
		Long: "Compare two sets of reports written by lockbench -o json=FILE. BASE and HEAD are each a file,\n" +
			"a directory or a quoted glob. A report is a session and counts once, with the median of its\n" +
			"runs: 4 a side are needed to tell anything, more with several strategies, and 6 for an interval.\n" +
			"With fewer, or with sessions that scatter too much, it says undecided and how many it needs, and\n" +
			"ends with 0. It ends with 110 if HEAD is worse by the primary metric (--metric) or needs more\n" +
			"commands or round trips, with --all-metrics by any, with 111 if it broke a guarantee, with 112 if\n" +
			"no run can be trusted, or with --strict if it is undecided. Only sessions that were recorded\n" +
			"in turns can end with 110: between two blocks the machine may have changed, and the verdict is\n" +
			"undecided. record makes such sessions. For builds of your own, ab is the better judge: it takes turns\n" +
			"in pairs.",
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

// refusal names what is not the same on both sides.
func refusal(different []compare.Difference) error {
	problems := []error{errors.New("these runs were made under different conditions; --force compares them anyway")}
	for _, d := range different {
		problems = append(problems, errors.New(d.String()))
	}
	return errors.Join(problems...)
}

// twoArguments returns an error unless there are two arguments.
func twoArguments(args []string, what string) error {
	if len(args) == 2 {
		return nil
	}
	return fmt.Errorf("%s; %d given", what, len(args))
}

// gate holds the flags that compare and ab share: what counts as a difference, and where
// to write it.
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
	set.Var((*percent)(&g.rules.Threshold), "threshold", "smallest change that counts")
	set.Var((*percent)(&g.rules.CountThreshold), "count-threshold", "the same for counts per acquisition, which "+
		"hardly vary: commands, round trips, bytes, attempts, wake-ups")
	set.Var((*percent)(&g.rules.Alpha), "alpha", "significance level: accepted false-positive rate")
	set.Func("metric", "`name` of the primary metric, which alone counts, with commands and round trips, such as "+
		"acq_per_s, wait_p99 or redis_cpu_per_acq (default "+g.rules.Primary+")", func(name string) error {
		m, err := compare.ParseMetric(name)
		if err == nil {
			g.rules.Primary = m.Name
		}
		return err
	})
	set.BoolVar(&g.rules.AllMetrics, "all-metrics", false, "every metric counts as the primary one does")
	set.BoolVar(&g.rules.Strict, "strict", false, "exit code 112 unless a change for the worse as large as the "+
		"threshold would have been significant, in every metric that counts")
	g.outputs.register(set)
}

// percent is a share such as 5% or 0.05. It refuses a bare 5, which could mean 5 % or 500 %.
type percent float64

func (p *percent) String() string { return strconv.FormatFloat(float64(*p)*100, 'g', 4, 64) + "%" }
func (p *percent) Type() string   { return "percent" }

// Set reads the text form.
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
		return fmt.Errorf("%q means %g %%, write %s%% for a percentage", text, number*100, digits)
	case number < 0 || number >= 1:
		return fmt.Errorf("%q is not from 0%% to 99%%", text)
	}
	*p = percent(number)
	return nil
}

func (g *gate) validate() error {
	if g.rules.Alpha == 0 {
		return errors.New("--alpha must be more than 0%")
	}
	return nil
}

// judgement returns the error of a comparison; nil if it is not worse. Undecided is an error
// for pairs, which are measured for a verdict, unless they scatter too much for one, but for
// existing reports only if they cannot be compared; with strict rules it always is.
func judgement(c *compare.Comparison) error {
	switch {
	case len(c.Broken) > 0:
		return &exit{ExitSafety, fmt.Errorf("a claimed guarantee did not hold in the head: %s", c.Broken[0].Text)}
	case c.Verdict == compare.Worse:
		return &exit{ExitRegression, fmt.Errorf("regression: the head is %s", c.Headline())}
	case c.Verdict == compare.Undecided && !c.Scattered() && (c.Method == compare.MethodPaired || !c.Comparable()),
		c.Verdict == compare.Undecided && c.Scattered() && c.Rules.Strict:
		return &exit{ExitInvalid, errors.New(c.Headline())}
	case c.Rules.Strict && c.Insensitive() != "":
		return &exit{ExitInvalid, fmt.Errorf("--strict: a change for the worse of the threshold could have been "+
			"missed, measure longer or more often: %s", c.Insensitive())}
	}
	return nil
}
