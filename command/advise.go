package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/advise"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
	"github.com/lockbench/lockbench/workloads/presets"
)

// adviseFlags are those of the command.
type adviseFlags struct {
	purpose    string
	strategies []string
	workload   workloads.Draft
	file       string // workload file, or preset
	rounds     int
	redis      lockbench.StoreOptions
	outputs    []string
	quiet      bool
	dryRun     bool
}

// contention lists the options of run that describe a contention; advise sets the
// others itself.
var contention = []string{"clients", "instances", "keys", "key-dist", "hold", "think", "rate", "arrivals", "ttl", "timeout", "work", "fence", "coalesce", "pool", "duration", "warmup", "seed"}

func (a *app) advise() *cobra.Command {
	f := &adviseFlags{purpose: string(advise.Efficiency), rounds: 6, redis: lockbench.StoreOptions{Address: "auto"}}
	cmd := &cobra.Command{
		Use:   "advise",
		Short: "Recommend one lock for your contention, or none, by measuring it",
		Long: "Measure a short list of locks under your contention, within three minutes, rank them by clients\n" +
			"served, waits and server CPU, and recommend the first, with what to import and the best third-party\n" +
			"library. Tied locks are ordered by what they need. Windows are as long as every client needs to be\n" +
			"served twice, unless --duration says otherwise; rounds with invalid runs are repeated.\n" +
			"--work counter says that the lock protects a value in Redis, --fence off that what it protects\n" +
			"cannot check fencing tokens, --coalesce that waiters can share one acquisition.\n" +
			"It ends with 111 if a claimed guarantee did not hold, and with 112 if nothing can be recommended.",
		Example: "  lockbench advise --clients 200 --instances 4 --hold 5ms\n" +
			"  lockbench advise --workload inventory --topology nodes:5\n" +
			"  lockbench advise -c 50 --rate 300/s --hold exp:2ms --for correctness --redis redis:6379 -o markdown",
		Args:               cobra.NoArgs,
		ValidArgsFunction:  cobra.NoFileCompletions,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
	}
	flags := cmd.Flags()
	f.register(flags)
	complete(cmd, adviceFormats().names())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		given := source{set: flags}
		given.readEnvironment()
		var file error
		if f.file != "" {
			file = given.readWorkload(f.file, &f.workload)
		}
		question, err := f.question(flags.Changed)
		outputs, wrong := parseOutputs(f.outputs, "table", adviceFormats())
		if faults := a.problems(given, file, err, wrong, f.redis.Validate(), clashes(inputs(f.file, f.workload, f.redis), places(outputs))); faults != nil {
			return faults
		}
		a.warn(question.Workload.Warnings()...)
		a.warn(given.renamed(append(f.idle(), idleRedis(flags, f.redis)...))...)
		if f.dryRun {
			return printed(showAdvice(a.stdout, question, f.redis, outputs))
		}
		return a.answer(cmd.Context(), f, question, outputs)
	}
	return cmd
}

func (f *adviseFlags) register(set *pflag.FlagSet) {
	set.SortFlags = false
	set.Var(textValue("purpose", &f.purpose), "for", "efficiency: the lock saves work, two holders are a nuisance; or correctness: without it data breaks")
	set.Var(textValue("name", &f.file), "workload", "a preset ("+strings.Join(presets.Names(), ", ")+") or a YAML file with a line for each of the options that follow")
	for _, field := range workloads.Fields() {
		if !slices.Contains(contention, field.Name) {
			continue
		}
		usual, help := field.Default, field.Help
		switch field.Name {
		case "duration":
			usual, help = "", help+" (default as long as every client needs to be served twice, within three minutes in all)"
		case "warmup":
			usual, help = "", help+" (default a quarter of that)"
		case "coalesce":
			help = "waiters of an instance want the same result: see what it brings that they share one acquisition (singleflight)"
		}
		set.VarP(&value{
			kind: field.Kind, text: func() string { return usual },
			set: func(s string) error {
				if n := len(field.Values(s)); n > 1 {
					return fmt.Errorf("advice is on one contention, there are %d values", n)
				}
				return f.workload.Give(field.Name, s)
			},
		}, field.Name, field.Short, help)
		if field.Switch {
			set.Lookup(field.Name).NoOptDefVal = "true"
		}
	}
	set.Var(intValue(&f.rounds), "runs", "runs of each lock, interleaved; below 6 a ratio has no 95 % interval")
	set.VarP(listValue("list", &f.strategies), "strategy", "s", "locks to compare, as for run; repeatable (default a short list of different kinds)")
	registerRedis(set, &f.redis)
	set.Var(stores{redis: &f.redis}.topologies(), "topology", "single, nodes:N, replicas:N or cluster:N: what to start, or what must be at the addresses; with nodes:3 or more Redlock is compared too")
	set.Var(textValue("image", &f.redis.Image), "image", "container image of Redis")
	set.VarP(listValue("format", &f.outputs), "output", "o", strings.Join(adviceFormats().names(), ", ")+"; with =FILE to write a file; repeatable (default table)")
	addSwitch(set, &f.quiet, "quiet", "q", "no progress on standard error")
	addSwitch(set, &f.dryRun, "dry-run", "", "print what will be measured and how long it will take, and touch no server")
}

// question returns what the flags ask, and every error in them.
func (f *adviseFlags) question(given func(string) bool) (advise.Question, error) {
	points, err := f.workload.Points()
	problems := flatten(err)
	if len(points) > 1 {
		problems = append(problems, fmt.Errorf("--workload: advice is on one contention, there are %d", len(points)))
	}
	q := advise.Question{For: advise.Purpose(f.purpose), Workload: points[0].Workload, Rounds: f.rounds, Redis: f.redis}
	q.Coalesce, q.Workload.Coalesce = q.Workload.Coalesce, false
	if len(f.strategies) > 0 {
		q.Named, err = strategies.ParseVariants(strings.Join(f.strategies, ","))
		for _, problem := range flatten(err) {
			problems = append(problems, fmt.Errorf("--strategy: %w", problem))
		}
	}
	if err == nil || len(q.Named) > 0 {
		problems = append(problems, q.Validate())
	}
	if err := errors.Join(problems...); err != nil {
		return q, err
	}
	return q.Sized(given("duration"), given("warmup")), nil
}

// idle names the options that have no effect. --fence has an effect: it says whether
// anything can check tokens.
func (f *adviseFlags) idle() []string {
	return slices.DeleteFunc(f.workload.Idle(), func(line string) bool { return strings.HasPrefix(line, "--fence ") })
}

func adviceFormats() formats[*advise.Document] {
	return formats[*advise.Document]{one: map[string]writer[*advise.Document]{
		"table":    advise.WriteTable,
		"json":     plain(advise.WriteJSON),
		"markdown": plain(advise.WriteMarkdown),
	}}
}

// showAdvice prints what would be measured.
func showAdvice(w io.Writer, q advise.Question, redis lockbench.StoreOptions, outputs []output[*advise.Document]) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(columns, "for\t%s\n", q.For)
	fmt.Fprintf(columns, "windows\t%v after %v of warm-up", q.Workload.Duration, q.Workload.Warmup)
	if needed := q.Needed(); needed > 0 {
		fmt.Fprintf(columns, "; to serve every client twice it takes %v (--duration), which is longer than three minutes in all", needed)
	}
	fmt.Fprintln(columns)
	for i, plan := range q.Plans() {
		label := "first"
		if i > 0 {
			label = "then, with the best lock"
		}
		for _, command := range advise.Commands(plan) {
			fmt.Fprintf(columns, "%s\t%s\n", label, command)
		}
	}
	fmt.Fprintf(columns, "redis\t%s\n", shown(redis))
	for _, o := range outputs {
		fmt.Fprintf(columns, "output\t%s\n", o)
	}
	fmt.Fprintf(columns, "expected\tabout %v\n", q.Expected().Round(time.Second))
	return columns.Flush()
}

// answer measures, and writes the advice.
func (a *app) answer(ctx context.Context, f *adviseFlags, q advise.Question, outputs []output[*advise.Document]) error {
	progress := a.newProgress(f.quiet)
	bench := advise.Bench{Run: lockbench.Run, Progress: progress.report}
	if !f.quiet {
		bench.Say = a.say
	}
	advice, err := bench.Answer(ctx, q)
	progress.close()
	if err != nil && len(advice.Ranking) == 0 {
		return err
	}
	revision(&advice.Tool)
	if err := saveAll(a, outputs, advice); err != nil {
		return &exit{ExitFailure, err}
	}
	return advised(advice, err)
}

// advised returns an error with the exit code of the advice; nil if there is advice.
func advised(a *advise.Document, err error) error {
	switch {
	case a.Interrupted:
		return &exit{ExitInterrupted, errors.New("interrupted, there is no advice")}
	case err != nil:
		return err
	case len(a.Broken) > 0:
		return &exit{ExitSafety, fmt.Errorf("a claimed guarantee did not hold: %s", names(a.Broken))}
	case a.Choice == nil:
		return &exit{ExitInvalid, errors.New("nothing that was measured can be recommended")}
	}
	return nil
}
