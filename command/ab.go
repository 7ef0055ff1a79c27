package command

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/compare"
)

// ab holds the flags of the command ab.
type ab struct {
	gate  *gate
	redis lockbench.StoreOptions
	pairs int
	seed  int
	keep  string
	quiet bool
}

func (a *app) ab() *cobra.Command {
	f := &ab{gate: newGate(), redis: lockbench.StoreOptions{Address: "auto"}}
	cmd := &cobra.Command{
		Use:   "ab BASE_BINARY HEAD_BINARY -- [FLAGS]",
		Short: "Compare two builds in interleaved runs",
		Long: "Run two builds of lockbench in turns against one Redis, each with FLAGS, and test the pairs.\n" +
			"Unless FLAGS or variables say otherwise a run is 2s long after 500ms of warm-up, without baselines.\n" +
			"It ends with 110 if the head is worse by the primary metric (--metric), with --strict by any,\n" +
			"with 111 if it broke a guarantee, with 112 if no verdict was possible.",
		Example: "  go build -o /tmp/base ./cmd/lockbench     # change something\n" +
			"  go build -o /tmp/head ./cmd/lockbench\n" +
			"  lockbench ab /tmp/base /tmp/head -- --strategy pubsub --clients 200",
		Args: cobra.ArbitraryArgs,
	}
	servers := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.register(cmd.Flags(), servers)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		given := a.input(cmd.Flags()).variables(servers) // the other variables apply to the runs
		dash := cmd.ArgsLenAtDash()
		if dash < 0 {
			dash = len(args)
		}
		builds, flags := args[:dash], args[dash:]
		outputs := f.gate.outputs.all()
		read, misplaced := abFlags(flags)
		for _, name := range builds {
			path, _ := binary(name) // its error is reported later
			read = append(read, path)
		}
		needed := twoArguments(builds, "BASE_BINARY and HEAD_BINARY are needed, and flags for them after a --")
		clash := check(outputs, append(read, f.redis.CAFile)...)
		if err := given.refuse(f.gate.validate(), f.validate(), needed, misplaced, clash); err != nil {
			return err
		}
		return a.runPaired(cmd.Context(), f, [2]string(builds), flags, outputs)
	}
	return cmd
}

func (f *ab) register(set, servers *pflag.FlagSet) {
	set.SortFlags = false
	set.IntVar(&f.pairs, "pairs", 14,
		"`number` of pairs of runs; the primary metric needs 6, all metrics together about 10")
	f.gate.register(set)
	all := stores{redis: &f.redis}
	all.register(servers, "")
	all.registerTopology(servers, "")
	set.AddFlagSet(servers)
	set.IntVar(&f.seed, "seed", 1, "`seed` of the order within the pairs")
	set.StringVar(&f.keep, "keep", "", "keep every run's report in this new `directory`")
	registerQuiet(set, &f.quiet)
}

func (f *ab) validate() error {
	var problems []error
	if f.pairs < 1 || f.pairs > maxPairs {
		problems = append(problems, fmt.Errorf("--pairs must be from 1 to %d, not %d", maxPairs, f.pairs))
	}
	return errors.Join(append(problems, f.redis.Validate())...)
}

// maxPairs is far above any useful number.
const maxPairs = 1000

// runPaired measures both builds and judges them.
func (a *app) runPaired(
	ctx context.Context, f *ab, builds [2]string, flags []string, outputs []output[*compare.Comparison],
) error {
	turns, err := newPairedRuns(ctx, a, f, builds, flags)
	if err != nil {
		return err
	}
	defer turns.close()
	redis, err := lockbench.OpenRedis(ctx, f.redis)
	if err != nil {
		return err
	}
	turns.redis = redis.Options()
	err = turns.run(ctx)
	// What has been measured is kept, also after Ctrl-C.
	closing := redis.Close(context.WithoutCancel(ctx))
	if err == nil && closing != nil {
		a.say("warning: %s", closing)
	}
	if len(turns.head.Reports) == 0 {
		if ctx.Err() != nil {
			return &exit{ExitStopped, errors.New("the first pair was not complete")}
		}
		return err
	}
	c, comparing := compare.Paired(turns.base, turns.head, f.gate.rules)
	if comparing != nil {
		return errors.Join(err, comparing)
	}
	at := redis.Describe()
	c.Redis = describe(at)
	c.Interrupted = ctx.Err() != nil
	if err := saveAll(a, outputs, c); err != nil {
		return err
	}
	switch {
	case c.Interrupted:
		return &exit{ExitInterrupted, fmt.Errorf("interrupted after %d of %d pairs", len(turns.head.Reports), f.pairs)}
	case err != nil:
		return err
	}
	return judgement(c)
}

func describe(r results.Redis) string {
	text := r.Release() + " " + r.Source
	if r.Topology != "" {
		text += " " + r.Topology
	}
	return text
}

// abFlags returns the files that the runs' flags name, and an error for flags that ab
// sets itself.
func abFlags(args []string) (read []string, err error) {
	f := newFlags()
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.ParseErrorsAllowlist.UnknownFlags = true // a build may have flags that this one has not
	set.Usage = func() {}
	f.register(set)
	collectProblems(set)
	if err := set.Parse(args); err != nil && !errors.Is(err, pflag.ErrHelp) {
		return nil, fmt.Errorf("after the --: %w", err)
	}
	var problems []error
	for _, name := range []string{"redis", "ca-file", "topology", "quiet", "output"} {
		if set.Changed(name) {
			problems = append(problems, fmt.Errorf("after the --: --%s belongs before it", name))
		}
	}
	for _, name := range []string{"image", "pin", "dry-run"} {
		if set.Changed(name) {
			problems = append(problems, fmt.Errorf("after the --: --%s is not supported by ab", name))
		}
	}
	// The runs inherit our variables, and read the files that these name.
	in := (&app{}).input(set).variables(set)
	_ = in.workload(f.file, &f.workload) // the runs report its errors
	return inputs(f.file, f.workload, f.stores.redis.CAFile), errors.Join(problems...)
}

// binary finds a build as a shell would.
func binary(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s: not a program that can be run: %w", name, errors.Unwrap(err))
	}
	return path, nil
}

// firstWord is how long a build may take to print its version.
const firstWord = 10 * time.Second

// isLockbench returns an error unless a program's version output is lockbench's. Only a
// lockbench gets flags.
func isLockbench(ctx context.Context, name, path string) error {
	within, cancel := context.WithTimeout(ctx, firstWord)
	defer cancel()
	cmd := exec.CommandContext(within, path, "version")
	cmd.WaitDelay = time.Second // for child processes that keep the output open
	said, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case within.Err() != nil:
		return fmt.Errorf("%s is not a lockbench: %q did not end within %v", name, name+" version", firstWord)
	case err != nil:
		return fmt.Errorf("%s is not a lockbench: %q ended with %w", name, name+" version", err)
	case !strings.HasPrefix(string(said), "lockbench "):
		return fmt.Errorf("%s is not a lockbench: %q said %q", name, name+" version", shorten(string(said)))
	}
	return nil
}

// shorten returns at most 60 letters of a text's first line.
func shorten(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if letters := []rune(line); len(letters) > 60 {
		return string(letters[:60]) + "…"
	}
	return line
}
