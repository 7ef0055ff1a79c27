package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// run is the command that measures. The root command is it too, under the
// program's name.
func (a *app) run(name string) *cobra.Command {
	f := newFlags()
	cmd := &cobra.Command{
		Use:               name,
		Short:             "Measure strategies (the default command)",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		// The faults are found and named all at once, see unknownFlags.
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
	}
	f.register(cmd.Flags())
	complete(cmd)
	cmd.SetFlagErrorFunc(func(failed *cobra.Command, err error) error {
		if failed != cmd || errors.Is(err, pflag.ErrHelp) { // the root's is its children's too
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
		for _, warning := range plan.Warnings() {
			a.say("warning: %s", warning)
		}
		if f.dryRun {
			return a.show(plan, outputs)
		}
		return a.measure(cmd.Context(), f, plan, outputs)
	}
	return cmd
}

// prepare makes a plan of flags and environment, and names every fault in them.
func (a *app) prepare(cmd *cobra.Command, f *flags, words []string) (lockbench.Plan, []output, error) {
	f.given.readEnvironment()
	var faults []error
	if len(words) > 0 {
		faults = append(faults, unknownWord(cmd, words[0]))
	}
	faults = append(faults, unknownFlags(cmd.Flags(), a.args)...)
	faults = append(faults, f.given.faults()...)
	plan, err := f.plan()
	faults = append(faults, each(err)...)
	outputs, err := parseOutputs(f.outputs)
	faults = append(faults, each(err)...)
	for i, fault := range faults {
		faults[i] = f.given.rename(fault)
	}
	return plan, outputs, errors.Join(faults...)
}

// unknownWord is the fault of a word that is neither flag nor command.
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
func (a *app) measure(ctx context.Context, f *flags, plan lockbench.Plan, outputs []output) error {
	progress := a.newProgress(f.quiet)
	plan.Progress = progress.report
	report, err := lockbench.Run(ctx, plan)
	progress.close()
	if report == nil {
		return outcome(ctx, nil, err)
	}
	if err := a.save(report, outputs); err != nil {
		return &exit{ExitFailure, err}
	}
	return outcome(ctx, report, err)
}

// save writes every output, also after one has failed.
func (a *app) save(report *results.Report, outputs []output) error {
	var faults []error
	for _, o := range outputs {
		if err := o.save(report, a.stdout, colorful(a.stdout)); err != nil {
			faults = append(faults, fmt.Errorf("write %w", err))
		}
	}
	return errors.Join(faults...)
}

// show prints what would be done.
func (a *app) show(plan lockbench.Plan, outputs []output) error {
	var names, places []string
	for _, v := range plan.Strategies {
		names = append(names, v.Name())
	}
	for _, o := range outputs {
		places = append(places, o.String())
	}
	w := plan.Workload
	window := fmt.Sprintf("%v each, after %v of warm-up", w.Duration, w.Warmup)
	if w.Iterations > 0 {
		window = fmt.Sprintf("%d acquisitions each, after %v of warm-up", w.Iterations, w.Warmup)
	}
	wait := "as long as it takes"
	if w.Timeout != nil {
		wait = "at most " + w.Timeout.String()
	}
	turn := fmt.Sprintf("hold %v, think %v, work %s, wait %s, TTL %v", w.Hold, w.Think, w.Work, wait, w.TTL)
	if w.Coalesce {
		turn += ", coalesced"
	}
	floors := "not measured"
	if plan.Floors {
		floors = "measured first"
	}
	for _, line := range [][2]string{
		{"strategies", strings.Join(names, ", ")},
		{"runs", fmt.Sprintf("%d of each strategy, %d in all, shuffled by seed %d", plan.Rounds, plan.Rounds*len(names), w.Seed)},
		{"clients", fmt.Sprintf("%d (instances: %d, connections of each: %d, keys: %d)", w.Clients, w.Instances, w.PoolSize(), w.Keys)},
		{"a turn", turn},
		{"measuring", window},
		{"floors", floors},
		{"redis", shown(plan.Redis)},
		{"output", strings.Join(places, ", ")},
		{"expected", duration(plan)},
	} {
		if _, err := fmt.Fprintf(a.stdout, "%-12s%s\n", line[0], line[1]); err != nil {
			return &exit{ExitFailure, fmt.Errorf("print the plan: %w", err)}
		}
	}
	return nil
}

// duration is about how long the plan takes. How long iterations take is what is
// to be found out.
func duration(plan lockbench.Plan) string {
	about := "about " + plan.Expected().Round(time.Second).String()
	if plan.Workload.Iterations > 0 {
		return about + ", and what the acquisitions take"
	}
	return about
}
