package command

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// run returns the command that measures. It is also the root command, under the
// program's name.
func (a *app) run(name string) *cobra.Command {
	f := newFlags()
	cmd := &cobra.Command{
		Use:               name,
		Short:             "Measure strategies (the default command)",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		// unknownFlags finds these errors, and names all at once.
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
	}
	f.register(cmd.Flags())
	complete(cmd, reportFormats(nil).names())
	cmd.SetFlagErrorFunc(func(failed *cobra.Command, err error) error {
		if failed != cmd || errors.Is(err, pflag.ErrHelp) { // the children of the root inherit its function
			return err
		}
		_, _, faults := a.prepare(cmd, f, cmd.Flags().Args())
		return errors.Join(err, faults)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		plan, outputs, faults := a.prepare(cmd, f, args)
		if faults != nil {
			return faults
		}
		a.warn(plan.Warnings()...)
		a.warn(f.idle(plan)...)
		if f.dryRun {
			if err := plan.Feasible(); err != nil {
				return err
			}
			return a.show(plan, outputs, f.thresholds)
		}
		return a.measure(cmd.Context(), f, plan, outputs)
	}
	return cmd
}

// prepare makes a plan from flags and environment, and names every error in them.
func (a *app) prepare(cmd *cobra.Command, f *flags, words []string) (lockbench.Plan, []output[*results.Report], error) {
	f.given.readEnvironment()
	var problems []error
	if len(words) > 0 {
		problems = append(problems, unknownWord(cmd, words[0]))
	}
	problems = append(problems, unknownFlags(cmd.Flags(), a.args)...)
	plan, wrong := f.read()
	problems = append(problems, wrong...)
	_, err := parseThresholds(f.thresholds, plan)
	problems = append(problems, flatten(err)...)
	outputs, err := parseOutputs(f.outputs, "table", reportFormats(plan.Titles()))
	problems = append(problems, flatten(err)...)
	problems = append(problems, flatten(clashes(f.reads(), places(outputs)))...)
	return plan, outputs, f.given.named(problems)
}

// unknownWord returns the error of a word that is neither flag nor command.
func unknownWord(cmd *cobra.Command, word string) error {
	hint := ""
	if near := cmd.Root().SuggestionsFor(word); len(near) > 0 {
		hint = fmt.Sprintf(", did you mean %q?", near[0])
	} else if _, err := strategies.ParseVariants(word); err == nil {
		hint = fmt.Sprintf(", did you mean --strategy %s?", word)
	}
	return fmt.Errorf("unknown command %q%s", word, hint)
}

// measure carries the plan out and writes the report.
func (a *app) measure(ctx context.Context, f *flags, plan lockbench.Plan, outputs []output[*results.Report]) error {
	progress := a.newProgress(f.quiet)
	plan.Progress = progress.report
	if !f.quiet {
		plan.Logf = a.say
	}
	report, err := lockbench.Run(ctx, plan)
	progress.close()
	if report == nil {
		return outcome(ctx, nil, err)
	}
	revision(&report.Tool)
	thresholds, _ := parseThresholds(f.thresholds, plan) // prepare has reported their errors
	report.Thresholds = results.Judge(report, thresholds)
	if err := saveAll(a, outputs, report); err != nil {
		return &exit{ExitFailure, err}
	}
	return outcome(ctx, report, err)
}

// parseThresholds parses the values of --threshold and names every error. It refuses a
// threshold for a strategy that the plan does not have.
func parseThresholds(given []string, plan lockbench.Plan) ([]results.Threshold, error) {
	var thresholds []results.Threshold
	var problems []error
	for _, text := range given {
		t, err := results.ParseThreshold(text)
		for _, problem := range flatten(err) {
			problems = append(problems, fmt.Errorf("--threshold: %w", problem))
		}
		about := func(v strategies.Variant) bool { return t.Matches(v.Name()) }
		if err == nil && len(plan.Strategies) > 0 && !slices.ContainsFunc(plan.Strategies, about) {
			problems = append(problems, fmt.Errorf("--threshold: %q is about %s, which is not run", text, t.Strategy))
		}
		thresholds = append(thresholds, t)
	}
	return thresholds, errors.Join(problems...)
}
