package command

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/compare"
)

// ab is a comparison of two builds: its flags, and what has been measured.
type ab struct {
	gate  *gate
	redis lockbench.StoreOptions
	pairs int
	seed  int
	keep  string
	quiet bool

	runs       []string     // the flags of the runs
	base, head compare.Side // the reports of complete pairs; a side's name is its program
}

func (a *app) ab() *cobra.Command {
	f := &ab{gate: newGate(), redis: lockbench.StoreOptions{Address: "auto"}}
	cmd := &cobra.Command{
		Use:   "ab BASE_BINARY HEAD_BINARY -- [FLAGS]",
		Short: "Compare two builds in interleaved runs",
		Long: "Run two builds of lockbench in turns against one Redis, each with FLAGS, and test the pairs.\n" +
			"Unless FLAGS say otherwise a run is 2s long after 500ms of warm-up, without baselines. Variables\n" +
			"stand in for the flags of ab, not for FLAGS.\n" +
			"It ends with 110 if the head is worse by the primary metric (--metric), with --strict by any,\n" +
			"with 111 if it broke a guarantee, with 112 if no verdict was possible.",
		Example: "  go build -o /tmp/base ./cmd/lockbench     # change something\n" +
			"  go build -o /tmp/head ./cmd/lockbench\n" +
			"  lockbench ab /tmp/base /tmp/head -- --strategy pubsub --clients 200",
		Args: cobra.ArbitraryArgs,
	}
	f.register(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		given := a.input(cmd.Flags()).variables(cmd.Flags())
		builds := args
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			builds, f.runs = args[:dash], args[dash:]
		}
		needed := twoArguments(builds, "BASE_BINARY and HEAD_BINARY are needed, and flags for them after a --")
		outputs := f.gate.outputs.all()
		clash := check(outputs, slices.Concat(builds, readBy(f.runs), []string{f.redis.CAFile})...)
		if err := given.refuse(f.gate.validate(), f.validate(builds), needed, clash); err != nil {
			return err
		}
		f.base.Name, f.head.Name = builds[0], builds[1]
		return a.runPaired(cmd.Context(), f, outputs)
	}
	return cmd
}

func (f *ab) register(set *pflag.FlagSet) {
	set.SortFlags = false
	set.IntVar(&f.pairs, "pairs", 14,
		"`number` of pairs of runs; the primary metric needs 6, all metrics together about 10")
	f.gate.register(set)
	all := stores{redis: &f.redis}
	all.register(set, "")
	all.registerTopology(set, "")
	set.IntVar(&f.seed, "seed", 1, "`seed` of the order within the pairs")
	set.StringVar(&f.keep, "keep", "", "keep every run's report in this new `directory`")
	registerQuiet(set, &f.quiet)
}

// notOfRuns are the flags of run that ab sets itself, or for all runs.
var notOfRuns = strings.Fields("redis ca-file topology image pin quiet output dry-run")

func (f *ab) validate(builds []string) error {
	problems := []error{f.redis.Validate()}
	if f.pairs < 1 || f.pairs > maxPairs {
		problems = append(problems, fmt.Errorf("--pairs must be from 1 to %d, not %d", maxPairs, f.pairs))
	}
	for _, build := range builds {
		_, err := exec.LookPath(build)
		problems = append(problems, err)
	}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.ParseErrorsAllowlist.UnknownFlags = true // a build may have flags that this one has not
	set.Usage = func() {}
	newFlags().register(set)
	_ = set.Parse(f.runs) // the runs report its errors
	for _, name := range notOfRuns {
		if set.Changed(name) {
			problems = append(problems, fmt.Errorf("after the --: --%s is not for the runs of ab", name))
		}
	}
	return errors.Join(problems...)
}

// maxPairs is far above any useful number.
const maxPairs = 1000

// runPaired measures both builds and judges them. What has been measured is written, also after Ctrl-C.
func (a *app) runPaired(ctx context.Context, f *ab, outputs []output[*compare.Comparison]) (err error) {
	folder := f.keep
	if folder == "" {
		if folder, err = os.MkdirTemp("", "lockbench-ab-"); err == nil {
			defer os.RemoveAll(folder)
		}
	} else if err = os.Mkdir(folder, 0o777); err != nil {
		err = fmt.Errorf("--keep: %w", err)
	}
	if err != nil {
		return err
	}
	redis, err := lockbench.OpenRedis(ctx, f.redis)
	if err != nil {
		return err
	}
	failed := a.measurePairs(ctx, f, redis.Options(), folder)
	if err := redis.Close(context.WithoutCancel(ctx)); err != nil && failed == nil {
		a.warn(err.Error())
	}
	if len(f.head.Reports) == 0 {
		if ctx.Err() != nil {
			return &exit{ExitStopped, errors.New("the first pair was not complete")}
		}
		return failed
	}
	c, err := compare.Paired(f.base, f.head, f.gate.rules)
	if err != nil {
		return errors.Join(failed, err)
	}
	at := redis.Describe()
	c.Redis = strings.TrimSpace(strings.Join([]string{at.Release(), at.Source, at.Topology}, " "))
	c.Interrupted = ctx.Err() != nil
	if err := saveAll(a, outputs, c); err != nil {
		return err
	}
	switch {
	case c.Interrupted:
		return &exit{ExitInterrupted, fmt.Errorf("interrupted after %d of %d pairs", len(f.head.Reports), f.pairs)}
	case failed != nil:
		return failed
	}
	return judgement(c)
}

// measurePairs runs the pairs until they are done, ctx ends or a build cannot be measured.
func (a *app) measurePairs(ctx context.Context, f *ab, redis lockbench.StoreOptions, folder string) error {
	sides := [2]*compare.Side{&f.base, &f.head}
	for i, headFirst := range order(f.pairs, f.seed) {
		turns := []int{0, 1}
		if headFirst {
			slices.Reverse(turns)
		}
		var pair [2]results.File
		for _, side := range turns {
			name := [2]string{"base", "head"}[side]
			file := fmt.Sprintf("%s-%03d.json", name, i+1)
			one := child{sides[side].Name, f.flagsOf(i + 1), redis, filepath.Join(folder, file)}
			report, err := one.run(ctx)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return fmt.Errorf("%s, run %d: %w", name, i+1, err)
			}
			pair[side] = results.File{Name: file, Report: report}
		}
		for side, report := range pair {
			sides[side].Reports = append(sides[side].Reports, report)
		}
		if !f.quiet {
			glance := compare.Glance(compare.Side{Reports: pair[:1]}, compare.Side{Reports: pair[1:]}, f.gate.rules)
			fmt.Fprintf(a.stderr, "[%d/%d] %s\n", i+1, f.pairs, glance)
		}
	}
	return nil
}

// flagsOf returns the flags of the runs of a pair: the user's come last and count. A workload may have a
// duration of its own.
func (f *ab) flagsOf(pair int) []string {
	usual := []string{"--no-baselines", "--seed", strconv.Itoa(pair)}
	if !slices.ContainsFunc(f.runs, func(flag string) bool { return strings.HasPrefix(flag, "--workload") }) {
		usual = append(usual, "--duration", "2s", "--warmup", "500ms")
	}
	return append(usual, f.runs...)
}

// order says for each pair whether the head goes first: in half of the pairs, in an
// order shuffled by the seed. So neither side gains from its position or from a
// rhythm of the machine.
func order(pairs int, seed int) []bool {
	headFirst := make([]bool, pairs)
	for i := range headFirst {
		headFirst[i] = i%2 == 1
	}
	shuffle := mathrand.New(mathrand.NewPCG(uint64(seed), uint64(pairs)))
	shuffle.Shuffle(pairs, func(i, j int) { headFirst[i], headFirst[j] = headFirst[j], headFirst[i] })
	return headFirst
}
