package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/drivers"
	"github.com/lockbench/lockbench/internal/apps/advise"
	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/driver"
	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// adviseFlags holds the values of advise's flags. Its method question makes an advise.Question from them.
type adviseFlags struct {
	purpose    string
	language   string
	budget     time.Duration
	explain    bool
	strategies []string
	workload   workloads.Draft
	file       string // workload file, or preset
	rounds     int
	redis      lockbench.StoreOptions
	outputs    *outputs[*advise.Document]
	quiet      bool
	dryRun     bool
}

// contention lists the workload options that advise accepts. advise itself chooses the values of all other workload
// options.
var contention = strings.Fields("clients instances keys key-dist hold think rate arrivals ttl timeout work fence " +
	"coalesce pool duration warmup seed")

func (a *app) advise() *cobra.Command {
	f := &adviseFlags{redis: lockbench.StoreOptions{Address: "auto"}, outputs: applicationOutputs(
		map[string]writer[*advise.Document]{"markdown": plain(document.WriteMarkdown[*advise.Document])})}
	cmd := &cobra.Command{
		Use:   "advise",
		Short: "Recommend a lock by measuring your contention",
		Long: "Measure a short list of locks under your contention within --budget, and recommend one. The\n" +
			"ranking compares starved clients, clients served per second, waits and server CPU, in this order.\n" +
			"The advice names the package to import, and the best lock of other authors. If a round has no\n" +
			"valid run, lockbench repeats it. While the budget lasts, it adds rounds for locks whose order is\n" +
			"not yet clear. If the order is still not clear at the end, the advice is UNDECIDED and has the\n" +
			"command that would decide. Equal locks are ordered by their requirements, then by whether a\n" +
			"library has them. A window is long enough to serve every client twice unless --duration sets it.\n" +
			"With a small budget, fewer locks are measured. --language java measures Redisson with its driver\n" +
			"(see lockbench drivers). Give --work counter if the lock protects a value in Redis, and --fence\n" +
			"off if the protected resource cannot check fencing tokens.\n\n" +
			"The exit code is 111 if a claimed guarantee did not hold, and 112 if the advice is undecided or no\n" +
			"lock can be recommended.",
		Example: "  lockbench advise --clients 200 --instances 4 --hold 5ms\n" +
			"  lockbench advise --workload inventory \\\n    --topology nodes:5 --budget 10m\n" +
			"  lockbench advise -c 50 --hold exp:2ms --think 1s \\\n    --language java\n" +
			"  lockbench advise -c 50 --rate 300/s --hold exp:2ms \\\n    --for correctness --redis redis:6379 -o markdown",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	f.register(flags)
	complete(cmd, f.outputs.names())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		given := a.input(flags).variables(flags)
		file := given.workload(f.file, &f.workload)
		question, unclear := f.question(cmd.Context(), flags.Changed)
		outputs := f.outputs.all(f.quiet)
		clash := check(outputs, inputs(f.file, f.workload, f.redis.CAFile)...)
		if err := given.refuse(file, unclear, f.redis.Validate(), clash); err != nil {
			return err
		}
		a.warn(question.Workload.Warnings()...)
		if f.dryRun {
			if f.language != "" && f.language != "go" && len(f.strategies) == 0 {
				a.say("a dry run starts no driver: advise adds the drivers for %s to this plan", f.language)
			}
			p := &layout.Page{Wide: a.width()}
			question.LayPlan(p, shown(f.redis), listed(outputs))
			return printed(p.Save(a.stdout, "plan"))
		}
		return a.answer(cmd.Context(), f, question, outputs)
	}
	return cmd
}

func (f *adviseFlags) register(set *pflag.FlagSet) {
	set.SortFlags = false
	set.StringVar(&f.purpose, "for", string(advise.Efficiency),
		"`purpose`: efficiency, if the lock only saves work; correctness, if two holders at once break data")
	set.StringVar(&f.language, "language", "",
		"`language` of the program that will use the lock: "+strings.Join(advise.Languages(), ", ")+" (default any)")
	fields := slices.DeleteFunc(workloads.Fields(), func(field workloads.Field) bool {
		return !slices.Contains(contention, field.Name)
	})
	for i := range fields {
		switch field := &fields[i]; field.Name {
		case "duration":
			field.Default = ""
			field.Help += " (default: every client can be served twice)"
		case "warmup":
			field.Default = ""
			field.Help += " (default a quarter of the window)"
		}
	}
	set.DurationVar(&f.budget, "budget", 3*time.Minute,
		"longest `time` until the advice; with a short one, fewer locks are measured")
	set.IntVar(&f.rounds, "runs", 6, "`number` of runs of each lock, interleaved; below 6 a ratio has no 95 % interval")
	set.StringArrayVarP(&f.strategies, "strategy", "s", nil,
		"`list` of locks to compare, as for run; repeatable (default a short list of different kinds)")
	set.BoolVar(&f.dryRun, "dry-run", false,
		"print the plan and its expected duration, and use no server")
	workload, servers, outputs := group("Workload"), group("Servers"), group("Outputs")
	registerWorkload(workload, &f.file, &f.workload, fields)
	all := stores{redis: &f.redis}
	all.register(servers, "")
	all.registerTopology(servers, "; nodes:3 or more adds Redlock to the comparison")
	registerImage(servers, &f.redis)
	f.outputs.register(outputs)
	registerQuiet(outputs, &f.quiet)
	outputs.BoolVar(&f.explain, "explain", false, "print every figure and the rules of the ranking")
	addGroups(set, workload, servers, outputs)
}

// question returns the question that the flags define, and all errors in the flags.
func (f *adviseFlags) question(ctx context.Context, given func(string) bool) (advise.Question, error) {
	points, err := f.workload.Points()
	problems := flatten(err)
	if len(points) > 1 {
		for label := range strings.FieldsSeq(points[0].Label) {
			name, _, _ := strings.Cut(label, "=")
			problems = append(problems, fmt.Errorf("--%s: advise takes one workload, not a sweep: give one value", name))
		}
	}
	q := advise.Question{
		For: advise.Purpose(f.purpose), Language: f.language, Workload: points[0].Workload, Rounds: f.rounds,
		Redis: f.redis, Budget: f.budget,
	}
	if len(f.strategies) > 0 {
		known, _ := recognised(f.strategies, true)
		find := driver.Asked(ctx)
		if f.dryRun {
			find = driver.Unasked
		}
		q.Named, err = driver.Parse(find, known...)
		problems = append(problems, prefixed("strategy", err))
	} else if f.language != "" && f.language != "go" && !f.dryRun {
		q.Drivers, q.Absent = driversFor(ctx, f.language, q.For)
	}
	if err == nil || len(q.Named) > 0 {
		problems = append(problems, causes(q)...)
	}
	if err := errors.Join(problems...); err != nil {
		return q, err
	}
	return q.Sized(given("duration"), given("warmup"))
}

// noLock is the error of a question that has no lock to compare. Often another error, such as an unknown language, is
// the cause.
const noLock = "--strategy: there is no lock to compare"

// causes returns the errors of a question. It omits noLock if there is any other error, because that error is probably
// the cause.
func causes(q advise.Question) (problems []error) {
	for _, problem := range flatten(q.Validate()) {
		switch text := problem.Error(); {
		case strings.HasPrefix(text, "--for "):
			problems, q.For = append(problems, problem), advise.Efficiency
		case strings.HasPrefix(text, "--language "):
			problems, q.Language = append(problems, problem), ""
		}
	}
	problems = append(problems, flatten(q.Validate())...)
	if len(problems) > 1 {
		problems = slices.DeleteFunc(problems, func(err error) bool { return err.Error() == noLock })
	}
	return problems
}

// driversFor returns the drivers of libraries in the given language. absent lists the drivers for this language that
// cannot be started, each with the reason.
func driversFor(
	ctx context.Context, language string, purpose advise.Purpose,
) (found []strategies.Variant, absent []results.LeftOut) {
	commands := slices.Sorted(maps.Keys(driver.All()))
	for _, name := range drivers.Of(language) {
		if !slices.Contains(commands, name) {
			commands = append(commands, name)
		}
	}
	if slices.Contains(drivers.Of(language), "redisson") { // which has several locks
		commands = append(commands, map[advise.Purpose][]string{
			advise.Efficiency: {"redisson spin", "redisson fair"}, advise.Correctness: {"redisson fenced"},
		}[purpose]...)
	}
	variants, problems := make([]strategies.Variant, len(commands)), make([]error, len(commands))
	var all sync.WaitGroup
	for i, command := range commands {
		all.Go(func() { variants[i], problems[i] = driver.Lookup(ctx, command) })
	}
	all.Wait()
	for i, v := range variants {
		name, _, _ := strings.Cut(commands[i], " ")
		switch {
		case problems[i] != nil && slices.Contains(drivers.Of(language), commands[i]):
			why := strings.TrimPrefix(problems[i].Error(), driver.Prefix+name+": ")
			absent = append(absent, results.LeftOut{Strategy: driver.Prefix + name, Why: results.Unfit.Remark(why)})
		case problems[i] == nil && slices.ContainsFunc(v.Strategy.Info.Libraries, func(l strategies.Library) bool {
			return strings.EqualFold(l.Language, language)
		}):
			found = append(found, v)
		}
	}
	return found, absent
}

// answer measures the locks and writes the advice. It returns an error unless a lock is recommended.
func (a *app) answer(ctx context.Context, f *adviseFlags, q advise.Question, outputs []output[*advise.Document]) error {
	progress := a.newProgress(f.quiet)
	advice, err := q.Answer(ctx, lockbench.Run, progress.report)
	progress.close()
	if err != nil && len(advice.Ranking) == 0 {
		return err
	}
	revision(&advice.Tool)
	advice.Brief = !f.explain
	if err := saveAll(a, outputs, advice, f.quiet); err != nil {
		return err
	}
	return advised(advice, err)
}

// advised returns the error of advise with its exit code, or nil if a lock is recommended.
func advised(a *advise.Document, err error) error {
	switch {
	case a.Interrupted:
		return &exit{ExitInterrupted, errors.New("interrupted before any lock could be recommended")}
	case err != nil:
		return err
	case len(a.Broken) > 0:
		return &exit{ExitSafety, fmt.Errorf("a claimed guarantee did not hold: %s", names(a.Broken))}
	case a.Undecided != nil:
		return &exit{ExitInvalid, fmt.Errorf("undecided between %s", words.And(a.Undecided.Between))}
	case a.Choice == nil:
		return &exit{ExitInvalid, errors.New("no measured lock can be recommended")}
	}
	return nil
}
