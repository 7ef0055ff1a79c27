package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/render"
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
	}
	f.register(cmd.Flags())
	complete(cmd, f.outputs.names())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		plan, outputs, err := a.prepare(cmd, f, args)
		if err != nil {
			return err
		}
		a.warn(plan.Warnings()...)
		if f.dryRun {
			return a.show(plan, outputs, f.thresholds)
		}
		return a.measure(cmd.Context(), f, plan, outputs)
	}
	return cmd
}

// prepare makes a plan from flags and environment, and names every error in them.
func (a *app) prepare(
	cmd *cobra.Command, f *flags, words []string,
) (lockbench.Plan, []output[*results.Report], error) {
	given := a.input(cmd.Flags()).variables(cmd.Flags())
	var stray error
	if len(words) > 0 {
		stray = unknownWord(cmd, words[0])
	}
	file := given.workload(f.file, &f.workload)
	plan, wrong := f.plan()
	_, crossed := parseThresholds(f.thresholds, plan)
	outputs, unnamed := oneFileEach(f.outputs.all(), plan.Titles())
	clash := check(outputs, inputs(f.file, f.workload, plan.Redis.CAFile)...)
	return plan, outputs, given.refuse(stray, file, wrong, crossed, unnamed, clash)
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

// reportOutputs returns the flag --output of a report.
func reportOutputs() *outputs[*results.Report] {
	return &outputs[*results.Report]{usual: "table", formats: map[string]writer[*results.Report]{
		"table":    render.WriteTable,
		"tables":   render.WriteTables,
		"markdown": plain(render.WriteMarkdown),
		"json":     plain(results.WriteJSON),
		"csv":      plain(render.WriteCSV),
		"benchfmt": plain(render.WriteBenchfmt),
		"hgrm":     func(io.Writer, *results.Report, bool) error { return nil }, // see oneFileEach
	}}
}

// unfit matches characters that file names should not have.
var unfit = regexp.MustCompile(`[^\w.=,-]+`)

// oneFileEach replaces each output as hgrm by one for each of the runs with these titles: for
// waits.hgrm and the strategy spin it is waits-spin.hgrm.
func oneFileEach(given []output[*results.Report], titles []string) (all []output[*results.Report], err error) {
	for _, o := range given {
		switch {
		case o.format != "hgrm":
			all = append(all, o)
			continue
		case o.file == "":
			err = errors.New("--output: hgrm writes several files, name them with hgrm=FILE")
			continue
		}
		extension := filepath.Ext(o.file)
		before := strings.TrimSuffix(o.file, extension)
		for _, title := range titles {
			o.file = before + "-" + unfit.ReplaceAllString(title, "_") + extension
			o.write = func(w io.Writer, r *results.Report, _ bool) error {
				if !slices.Contains(render.HgrmNames(r), title) {
					return nil
				}
				return render.WriteHgrm(w, r, title)
			}
			all = append(all, o)
		}
	}
	return all, err
}

// measure carries the plan out and writes the report.
func (a *app) measure(
	ctx context.Context, f *flags, plan lockbench.Plan, outputs []output[*results.Report],
) error {
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
		return err
	}
	return outcome(ctx, report, err)
}

// revision sets commit and branch from the variables of GitHub's and GitLab's jobs, if
// the build does not know them.
func revision(tool *results.Tool) {
	tool.Commit = cmp.Or(tool.Commit, os.Getenv("GITHUB_SHA"), os.Getenv("CI_COMMIT_SHA"))
	tool.Branch = cmp.Or(tool.Branch, os.Getenv("GITHUB_HEAD_REF"), os.Getenv("GITHUB_REF_NAME"),
		os.Getenv("CI_COMMIT_REF_NAME"))
}

// parseThresholds parses the values of --threshold and names every error. It refuses a
// threshold for a strategy that the plan does not have.
func parseThresholds(given []string, plan lockbench.Plan) ([]results.Threshold, error) {
	var thresholds []results.Threshold
	var problems []error
	for _, text := range given {
		t, err := results.ParseThreshold(text)
		about := func(v strategies.Variant) bool { return t.Matches(v.Name()) }
		if err == nil && len(plan.Strategies) > 0 && !slices.ContainsFunc(plan.Strategies, about) {
			err = fmt.Errorf("%q is about %s, which is not run", text, t.Strategy)
		}
		problems = append(problems, prefixed("threshold", err))
		thresholds = append(thresholds, t)
	}
	return thresholds, errors.Join(problems...)
}

// show prints what would be done.
func (a *app) show(plan lockbench.Plan, outputs []output[*results.Report], thresholds []string) error {
	w := plan.Workload
	var names, faults, sweep, together []string
	for _, v := range plan.Strategies {
		names = append(names, v.Name())
	}
	for _, fault := range w.Faults {
		faults = append(faults, fault.String())
	}
	for _, point := range plan.Sweep {
		sweep = append(sweep, point.Label)
	}
	if plan.Session != "" {
		together = append(together, "session "+plan.Session)
	}
	if !plan.Start.IsZero() {
		together = append(together, "from "+plan.Start.Format(time.RFC3339))
	}
	seed := "a seed that is drawn"
	if w.Seed != 0 {
		seed = fmt.Sprintf("seed %d", w.Seed)
	}
	loop := "closed: a client acquires again once it has released"
	if w.Rate > 0 {
		loop = "open: arrivals are independent of completions"
	}
	expected := "about " + plan.Expected().Round(time.Second).String()
	if w.Iterations > 0 {
		expected += ", plus the time of the acquisitions"
	}
	baselines := map[bool]string{true: "measured first", false: "not measured"}
	lines := [][]string{
		{"strategies", strings.Join(names, ", ")},
		{"runs", fmt.Sprintf("%d of each strategy, %d in all, shuffled by %s",
			plan.Rounds, plan.Rounds*len(names)*max(1, len(plan.Sweep)), seed)},
		{"sweep", strings.Join(sweep, ", ")},
		{"workload", w.Describe()},
		{"connections", fmt.Sprintf("%d of each instance", w.PoolSize())},
		{"loop", loop},
		{"faults", strings.Join(faults, ", ")},
		{"baselines", baselines[plan.Baselines]},
		{"together", strings.Join(together, ", ")},
		{"redis", shown(plan.Redis)},
		{"stores", otherStores(plan)},
		{"output", listed(outputs)},
		{"thresholds", strings.Join(thresholds, ", ")},
		{"expected", expected},
	}
	return a.columns(slices.DeleteFunc(lines, func(line []string) bool { return line[1] == "" }))
}

// otherStores says where the strategies' stores other than Redis are.
func otherStores(plan lockbench.Plan) string {
	var places []string
	for _, v := range plan.Strategies {
		name := v.Info().Store
		at := plan.Stores[name]
		at.Address = cmp.Or(at.Address, "started")
		place := name + " " + shown(at)
		if name != "" && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	return strings.Join(places, ", ")
}
