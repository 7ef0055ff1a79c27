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
	f := &ab{gate: newGate(), redis: lockbench.StoreOptions{Address: "auto"}, pairs: 14, seed: 1}
	cmd := &cobra.Command{
		Use:   "ab BASE_BINARY HEAD_BINARY -- [FLAGS]",
		Short: "Say whether one build is better or worse than another, by taking turns",
		Long: "Run two builds of lockbench in turns against one Redis, each with FLAGS, and test the pairs.\n" +
			"Unless FLAGS or variables say otherwise a run is 2s long after 500ms of warm-up, without baselines.\n" +
			"It ends with 110 if the head is worse by the primary metric (--metric), with --strict by any,\n" +
			"with 111 if it broke a guarantee, with 112 if no verdict was possible.",
		Example: "  go build -o /tmp/base ./cmd/lockbench     # change something\n" +
			"  go build -o /tmp/head ./cmd/lockbench\n" +
			"  lockbench ab /tmp/base /tmp/head -- --strategy pubsub --clients 200",
		Args:               cobra.ArbitraryArgs,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
	}
	redisFlags := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.register(cmd.Flags(), redisFlags)
	given := source{set: redisFlags}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		given.readEnvironment() // the variables of other flags apply to the runs
		dash := cmd.ArgsLenAtDash()
		if dash < 0 {
			dash = len(args)
		}
		builds, flags := args[:dash], args[dash:]
		outputs, err := f.gate.parse()
		read, misplaced := abFlags(flags)
		faults := a.problems(source{set: cmd.Flags()}, err, given.named(flatten(f.validate())), twoArguments(builds, "BASE_BINARY and HEAD_BINARY are needed, and what is for them behind a --"), misplaced, clashes(slices.Concat(read, programs(builds), reads("--ca-file", f.redis.CAFile)), places(outputs)))
		if faults != nil {
			return faults
		}
		return a.runPaired(cmd.Context(), f, [2]string(builds), flags, outputs)
	}
	return cmd
}

func (f *ab) register(set, redis *pflag.FlagSet) {
	set.SortFlags = false
	set.Var(intValue(&f.pairs), "pairs", "pairs of runs; from 6 on something can be found by the primary metric, about 10 are needed for all the others")
	f.gate.register(set)
	registerRedis(redis, &f.redis)
	redis.Var(textValue("form", &f.redis.Topology), "topology", "single, nodes:N, replicas:N or cluster:N")
	set.AddFlagSet(redis)
	set.Var(intValue(&f.seed), "seed", "of the order within the pairs")
	set.Var(textValue("dir", &f.keep), "keep", "keep every run's report in this new directory")
	addSwitch(set, &f.quiet, "quiet", "q", "no progress on standard error")
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
func (a *app) runPaired(ctx context.Context, f *ab, builds [2]string, flags []string, outputs []output[*compare.Comparison]) error {
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
		return &exit{ExitFailure, err}
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
