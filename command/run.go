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
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/driver"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/internal/watch"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/html"
	"github.com/lockbench/lockbench/results/render"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// run returns the command that measures strategies. root also uses it, under the program's name, as the root command.
func (a *app) run(name string) *cobra.Command {
	f := newFlags()
	cmd := &cobra.Command{
		Use:               name,
		Short:             "Measure strategies (the default command)",
		Args:              cobra.ArbitraryArgs, // see rejectArguments
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f.register(cmd.Flags())
	complete(cmd, f.outputs.names())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		args = addresses(cmd.Flags(), args)
		given := a.input(cmd.Flags()).variables(cmd.Flags())
		all := given.file(f.all, &f.workload)
		file := given.workload(f.file, &f.workload)
		plan, wrong := f.plan()
		_, crossed := parseThresholds(f.thresholds, plan)
		outputs := f.outputs.all(f.quiet)
		clash := check(oneFileEach(outputs, plan.Titles(), itself), inputs(f.file, f.workload, plan.Redis.CAFile, f.all)...)
		watchers, taken := watch.Listen(f.watched)
		err := given.refuse(rejectArguments(cmd, args), all, file, wrong, crossed, unnamed(outputs), clash, taken)
		if err != nil || f.dryRun {
			err = errors.Join(err, watchers.Close())
		}
		if err != nil {
			return err
		}
		for _, note := range f.notes {
			a.say("%s", note)
		}
		a.warn(plan.Warnings().Texts()...)
		if f.dryRun {
			return a.show(plan, outputs, f.thresholds)
		}
		return a.measure(cmd.Context(), f, plan, outputs, watchers)
	}
	return cmd
}

// addresses sets --redis to each argument that is a URL, and returns the other arguments.
func addresses(set *pflag.FlagSet, words []string) (others []string) {
	for _, word := range words {
		if !strings.Contains(word, "://") {
			others = append(others, word)
		} else if err := set.Set("redis", word); err != nil { // only if there is no --redis: patient keeps value errors
			others = append(others, word)
		}
	}
	return others
}

// rejectArguments returns an error for an argument that is not a command. The error names the command that was probably
// meant.
func rejectArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var commands []string
	for _, c := range cmd.Root().Commands() {
		commands = append(commands, c.Name())
	}
	near := cmp.Or(familiarCommands[args[0]], words.Near(args[0], commands))
	known, _ := recognised(args[:1], true)
	_, err := strategies.ParseVariants(known[0])
	hint := ""
	switch {
	case err == nil || strings.HasPrefix(known[0], driver.Prefix):
		hint = fmt.Sprintf(", did you mean --strategy %s?", args[0])
	case near != "":
		hint = fmt.Sprintf(", did you mean lockbench %s?", near)
	default:
		hint = "; lockbench --help lists the commands"
	}
	return fmt.Errorf("unknown command %q%s", args[0], hint)
}

// reportOutputs returns the flag --output of a command that writes a report.
func reportOutputs() *outputs[*results.Report] {
	return &outputs[*results.Report]{usual: "table", formats: map[string]writer[*results.Report]{
		"table":    render.WriteTable,
		"tables":   render.WriteTables,
		"markdown": plain(render.WriteMarkdown),
		"json":     plain(results.WriteJSON),
		"csv":      plain(render.WriteCSV),
		"benchfmt": plain(render.WriteBenchfmt),
		hgrm:       plain(func(io.Writer, *results.Report) error { return nil }), // see oneFileEach
	}}
}

// hgrm is the format that writes one file per strategy.
const hgrm = "hgrm"

// unnamed returns an error for an hgrm output without a file name.
func unnamed[T any](outputs []output[T]) error {
	if slices.ContainsFunc(outputs, func(o output[T]) bool { return o.format == hgrm && o.file == "" }) {
		return errors.New("--output: hgrm writes a file for each strategy: write hgrm=FILE")
	}
	return nil
}

// unfit matches characters that oneFileEach replaces in file names.
var unfit = regexp.MustCompile(`[^\w.=,-]+`)

// itself returns its argument, because the document that run writes is the report itself.
func itself(report *results.Report) *results.Report { return report }

// oneFileEach replaces an hgrm output with one output per strategy: waits.hgrm becomes waits-spin.hgrm for the strategy
// spin. of returns the report of a document.
func oneFileEach[T any](outputs []output[T], strategies []string, of func(T) *results.Report) (all []output[T]) {
	for _, o := range outputs {
		if o.format != hgrm || o.file == "" {
			all = append(all, o)
			continue
		}
		extension := filepath.Ext(o.file)
		before := strings.TrimSuffix(o.file, extension)
		for _, name := range strategies {
			o.file = before + "-" + unfit.ReplaceAllString(name, "_") + extension
			o.write = plain(func(w io.Writer, document T) error { return render.WriteHgrm(w, of(document), name) })
			all = append(all, o)
		}
	}
	return all
}

// reportName returns the name under which the live page shows the report: its JSON file, else "this run".
func reportName(outputs []output[*results.Report]) string {
	for _, o := range outputs {
		if o.format == "json" && o.file != "" {
			return o.file
		}
	}
	return "this run"
}

// watched sends the progress of a plan to the live page, without a remaining time if the plan uses --iterations,
// because the length of a window is then unknown.
func watched(watchers *watch.Watchers, plan lockbench.Plan, now lockbench.Progress) {
	remaining := now.Remaining
	counted := func(p workloads.Point) bool { return p.Workload.Iterations > 0 }
	if plan.Workload.Iterations > 0 || slices.ContainsFunc(plan.Sweep, counted) {
		remaining = 0
	}
	watchers.Progress(html.Progress{
		Run: now.Run, Runs: now.Runs, Title: now.Strategy, Round: now.Round,
		Phase: untrusted.Printable(now.Phase),
	}, remaining)
}

// measure executes the plan and writes the report. It returns the error of outcome, which has the exit code.
func (a *app) measure(
	ctx context.Context, f *flags, plan lockbench.Plan, outputs []output[*results.Report], watchers *watch.Watchers,
) error {
	for _, place := range watchers.Serve(func(text string) { a.warn(text) }) {
		if !f.quiet {
			a.say("%s", place)
		}
	}
	defer func() {
		if err := watchers.Close(); err != nil {
			a.warn(err.Error())
		}
	}()
	progress := a.newProgress(f.quiet)
	plan.Progress = progress.report
	if watchers.Any() {
		plan.Watch = watchers.See
		plan.Progress = func(now lockbench.Progress) {
			watched(watchers, plan, now)
			progress.report(now)
		}
	}
	if !f.quiet {
		plan.Logf = a.say
	}
	complete := func(report *results.Report) []output[*results.Report] {
		revision(&report.Tool)
		thresholds, _ := parseThresholds(f.thresholds, plan) // their errors have been reported
		report.Thresholds = results.Judge(report, thresholds)
		watchers.End(results.File{Name: reportName(outputs), Report: report})
		return oneFileEach(outputs, render.HgrmNames(report), itself)
	}
	if plan.Generators.Number <= 1 { // several generators merge their records only at the end
		plan.Ended = func(report *results.Report) {
			report.Interrupted, report.Finished = true, time.Now()
			a.ended.keep(func() error { return writeAll(a, complete(report), report, f.quiet) })
		}
	}
	report, err := lockbench.Run(ctx, plan)
	progress.close()
	if report == nil {
		return outcome(ctx, nil, err)
	}
	if shared := report.Shared; shared != nil {
		if err == nil && !report.Interrupted {
			a.say("generator %d sent its record to generator 0, which writes the report", shared.Generator)
		}
		report.Runs = nil // generator 0 judges the merged runs
		return outcome(ctx, report, err)
	}
	if err := saveAll(a, complete(report), report, f.quiet); err != nil {
		return err
	}
	return outcome(ctx, report, err)
}

// revision sets commit and branch from the variables of a GitHub or GitLab job if the build does not record them.
func revision(tool *results.Tool) {
	tool.Commit = cmp.Or(tool.Commit, os.Getenv("GITHUB_SHA"), os.Getenv("CI_COMMIT_SHA"))
	tool.Branch = cmp.Or(tool.Branch, os.Getenv("GITHUB_HEAD_REF"), os.Getenv("GITHUB_REF_NAME"),
		os.Getenv("CI_COMMIT_REF_NAME"))
}

// parseThresholds parses the values of --threshold and returns every error. A threshold for a strategy that is not in
// the plan is an error.
func parseThresholds(given []string, plan lockbench.Plan) ([]results.Threshold, error) {
	var thresholds []results.Threshold
	var problems []error
	for _, text := range given {
		t, err := results.ParseThreshold(text)
		about := func(v strategies.Variant) bool { return t.Matches(v.Name()) }
		if err == nil && len(plan.Strategies) > 0 && !slices.ContainsFunc(plan.Strategies, about) {
			err = fmt.Errorf("%q is about %s, which this run does not measure", text, t.Strategy)
		}
		problems = append(problems, prefixed("threshold", err))
		thresholds = append(thresholds, t)
	}
	return thresholds, errors.Join(problems...)
}

// show prints the plan, for --dry-run.
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
	if g := plan.Generators; g.Number > 1 {
		together = append(together, fmt.Sprintf("%d generators, session %s", g.Number, g.Session))
	}
	seed := "a random seed"
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

// otherStores returns the addresses of all stores except Redis that the plan's strategies and transactions use.
func otherStores(plan lockbench.Plan) string {
	var names, places []string
	for _, v := range plan.Strategies {
		names = append(names, v.Info().Store)
	}
	if plan.Workload.Work == workloads.WorkTransaction {
		names = append(names, "postgres")
	}
	for _, name := range names {
		at := plan.Stores[name]
		at.Address = cmp.Or(at.Address, "started")
		place := name + " " + shown(at)
		if name != "" && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	return strings.Join(places, ", ")
}
