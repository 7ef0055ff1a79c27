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
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/compare"
)

// ab is a comparison of two builds: its flags, and what has been measured.
type ab struct {
	gate   *gate
	redis  lockbench.StoreOptions
	pairs  int
	until  string
	budget time.Duration // 0 means that there is no limit
	seed   int
	keep   string
	quiet  bool

	runs       []string     // the flags of the runs
	base, head compare.Side // the reports of complete pairs; a side's name is its program

	begun   time.Time
	at      string        // the Redis, for the comparison
	longest time.Duration // that a pair took
	late    bool          // there is no time for another pair
	crowded string        // why a client alone was not measured
}

// The values of --until: as many pairs as --pairs, or more of them until there is a verdict.
const untilPairs, untilDecided = "pairs", "decided"

func (a *app) ab() *cobra.Command {
	f := &ab{gate: newGate(), redis: lockbench.StoreOptions{Address: "auto"}}
	cmd := &cobra.Command{
		Use:   "ab [flags] BASE_BINARY HEAD_BINARY -- [FLAGS]",
		Short: "Compare two builds in interleaved runs",
		Long: "Run two builds of lockbench in turns against one Redis, each with FLAGS, and test the pairs.\n" +
			"Unless FLAGS set other values, a run is 2s long after 500ms of warm-up, without baselines. In each\n" +
			"pair a single client measures what an acquisition costs. Environment variables set the flags of\n" +
			"ab, not FLAGS. If the times of this machine scatter too much, the verdict is undecided and names\n" +
			"the number of pairs that would be enough; --until decided doubles the pairs until there is a\n" +
			"verdict or the budget ends.\n\nThe exit code is 110 if the head is worse by the primary metric\n" +
			"(--metric) or needs more commands or round trips, with --all-metrics by any metric; 111 if the\n" +
			"head broke a guarantee; 112 if no verdict was possible, and with --strict or --until decided if\n" +
			"the verdict is undecided.",
		Example: "  go build -o /tmp/base ./cmd/lockbench # change something\n" +
			"  go build -o /tmp/head ./cmd/lockbench\n" +
			"  lockbench ab /tmp/base /tmp/head -- -s pubsub -c 200\n" +
			"  lockbench ab /tmp/base /tmp/head --until decided \\\n    --budget 15m -- -s pubsub",
		Args: cobra.ArbitraryArgs,
	}
	f.register(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		given := a.input(cmd.Flags()).variables(cmd.Flags())
		builds := args
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			builds, f.runs = args[:dash], args[dash:]
		}
		needed := twoArguments(builds, "BASE_BINARY and HEAD_BINARY are needed, and after a -- the flags of their runs")
		outputs := f.gate.outputs.all(f.quiet)
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
		"`number` of pairs of runs; the primary metric needs 6, all metrics about 10")
	set.StringVar(&f.until, "until", untilPairs,
		"`end`: pairs, or decided, which doubles the number of pairs until there is a verdict")
	set.DurationVar(&f.budget, "budget", 0,
		"`time` after which no further pair begins (default 15m with --until decided, else no limit)")
	set.Lookup("budget").DefValue = ""
	set.IntVar(&f.seed, "seed", 1, "`seed` of the order within the pairs")
	set.StringVar(&f.keep, "keep", "", "keep every run's report in this new `directory`")
	registerQuiet(set, &f.quiet)
	verdict, servers := group("Verdict"), group("Servers")
	f.gate.register(verdict)
	all := stores{redis: &f.redis}
	all.register(servers, "")
	all.registerTopology(servers, "")
	addGroups(set, verdict, servers)
}

// notAlone are the flags of run for several generators.
const notAlone = "generators generator session join-timeout"

// notOfRuns are the flags of run that ab sets itself, or for all runs.
var notOfRuns = strings.Fields("redis ca-file topology image " + notAlone + " quiet output dry-run")

func (f *ab) validate(builds []string) error {
	problems := []error{f.redis.Validate()}
	if f.pairs < 1 || f.pairs > maxPairs {
		problems = append(problems, fmt.Errorf("--pairs must be from 1 to %d, not %d", maxPairs, f.pairs))
	}
	switch {
	case f.until != untilPairs && f.until != untilDecided:
		problems = append(problems, fmt.Errorf("--until must be %s or %s, not %q", untilPairs, untilDecided, f.until))
	case f.budget < 0:
		problems = append(problems, fmt.Errorf("--budget must be more than 0s, not %v", f.budget))
	case f.budget == 0 && f.until == untilDecided:
		f.budget = usualBudget
	}
	for _, build := range builds {
		problems = append(problems, runnable(build))
	}
	_, in := ofRuns(f.runs)
	for _, name := range notOfRuns {
		if in.set.Changed(name) {
			problems = append(problems, fmt.Errorf("after the --: --%s is not allowed in the runs of ab", name))
		}
	}
	return errors.Join(problems...)
}

// runnable returns an error if a build is no program that can be started.
func runnable(build string) error {
	_, err := exec.LookPath(build)
	if wrong, is := errors.AsType[*exec.Error](err); is {
		err = wrong.Err
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%q cannot be started: %w; give the path of a build of lockbench, such as ./lockbench", build, err)
}

const (
	// maxPairs is far above any useful number.
	maxPairs = 1000
	// usualBudget is the default with --until decided.
	usualBudget = 15 * time.Minute
)

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
	at := redis.Describe()
	f.at = strings.TrimSpace(strings.Join([]string{at.Release(), at.Source, at.Topology}, " "))
	c, failed := a.paired(ctx, f, redis.Options(), folder)
	if err := redis.Close(context.WithoutCancel(ctx)); err != nil && failed == nil {
		a.warn(err.Error())
	}
	if len(f.head.Reports) == 0 {
		if ctx.Err() != nil {
			return &exit{ExitStopped, errors.New("interrupted in the first pair")}
		}
		return failed
	}
	if c == nil {
		return failed
	}
	c.Interrupted = ctx.Err() != nil
	if f.late {
		c.Notes = append(c.Notes,
			results.BudgetEnded.Remark(f.budget, "after "+words.Count(len(f.head.Reports), "pair")))
	}
	if err := saveAll(a, outputs, c, f.quiet); err != nil {
		return err
	}
	switch {
	case c.Interrupted:
		return &exit{ExitInterrupted, fmt.Errorf("interrupted after %d of %d pairs", len(f.head.Reports), f.pairs)}
	case failed != nil:
		return failed
	}
	if err := judgement(c); err != nil || f.until == untilPairs || !c.Scattered() {
		return err
	}
	return &exit{ExitInvalid, errors.New(c.Headline())}
}

// paired measures pairs and compares them; with --until decided, then twice as many, and again, while it is undecided
// and there is time. Each look at the pairs has half of the alpha of the one before, so that all together do not exceed
// it. The comparison is nil if there is no pair, or nothing to compare.
func (a *app) paired(
	ctx context.Context, f *ab, redis lockbench.StoreOptions, folder string,
) (c *compare.Comparison, failed error) {
	rules := f.gate.rules
	f.begun = time.Now()
	for look, pairs := 1, f.pairs; ; look++ {
		before := len(f.head.Reports)
		if f.until == untilDecided {
			rules.Alpha /= 2
		}
		failed = a.measurePairs(ctx, f, redis, folder, pairs, rules)
		if len(f.head.Reports) == before { // nothing to look at, or nothing new
			return c, failed
		}
		var err error
		if c, err = f.compared(rules); err != nil {
			return nil, errors.Join(failed, err)
		}
		undecided := c.Verdict == compare.Undecided && len(c.Broken) == 0
		if f.until == untilDecided {
			c.Notes = append(c.Notes, results.LookedAgain.Remark(look, results.Measured(rules.Alpha, "%.3g")))
		}
		if f.until == untilPairs || failed != nil || ctx.Err() != nil || f.late || !undecided || 2*pairs > maxPairs {
			return c, failed
		}
		if !f.quiet {
			a.say("%s", c.Headline())
		}
		pairs *= 2
	}
}

// compared compares the complete pairs.
func (f ab) compared(rules compare.Rules) (*compare.Comparison, error) {
	f.base.Name, f.head.Name = untrusted.Printable(f.base.Name), untrusted.Printable(f.head.Name)
	c, err := compare.Paired(f.base, f.head, rules)
	if err != nil {
		return nil, err
	}
	c.Redis = f.at
	if f.crowded != "" {
		c.Notes = append(c.Notes, results.AloneNotMeasured.Remark(f.crowded))
	}
	return c, nil
}

// keepPairs has a second signal write the comparison of the pairs so far.
func (a *app) keepPairs(soFar ab, rules compare.Rules) {
	a.ended.keep(func() error {
		c, err := soFar.compared(rules)
		if err != nil {
			return err
		}
		c.Interrupted = true
		return writeAll(a, soFar.gate.outputs.all(soFar.quiet), c, soFar.quiet)
	})
}

// measurePairs runs pairs until there are so many, ctx or the budget ends, or a build cannot be measured.
func (a *app) measurePairs(
	ctx context.Context, f *ab, redis lockbench.StoreOptions, folder string, pairs int, rules compare.Rules,
) error {
	from := len(f.head.Reports)
	for i, headFirst := range order(pairs-from, f.seed+from) {
		begun, number := time.Now(), from+i+1
		if f.budget > 0 && number > 1 && begun.Add(f.longest).Sub(f.begun) > f.budget {
			f.late = true
			return nil
		}
		turns := []int{0, 1}
		if headFirst {
			slices.Reverse(turns)
		}
		pair, err := f.pair(ctx, turns, number, f.flagsOf(number), redis, folder, "")
		if err == nil && ctx.Err() == nil {
			err = f.oneClient(ctx, turns, number, redis, folder)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		f.base.Reports, f.head.Reports = append(f.base.Reports, pair[0]), append(f.head.Reports, pair[1])
		a.keepPairs(*f, rules) // the reports are only added to
		f.longest = max(f.longest, time.Since(begun))
		if !f.quiet {
			glance := compare.Glance(compare.Side{Reports: pair[:1]}, compare.Side{Reports: pair[1:]}, f.gate.rules)
			done := a.lines(fmt.Sprintf("[%d/%d] %s", number, pairs, glance))
			fmt.Fprintln(a.stderr, strings.Join(done, "\n"))
		}
	}
	return nil
}

// pair runs both builds with these flags, in these turns. A report's file is the prefix, the side and the pair's
// number.
func (f *ab) pair(
	ctx context.Context, turns []int, number int, flags []string, redis lockbench.StoreOptions, folder, prefix string,
) (pair [2]results.File, err error) {
	for _, side := range turns {
		name := [2]string{"base", "head"}[side]
		file := fmt.Sprintf("%s%s-%03d.json", prefix, name, number)
		one := child{[2]string{f.base.Name, f.head.Name}[side], flags, redis, filepath.Join(folder, file)}
		report, err := one.run(ctx)
		if err != nil {
			return pair, fmt.Errorf("%s, run %d: %w", name, number, err)
		}
		pair[side] = results.File{Name: file, Report: report}
	}
	return pair, nil
}

// oneClient runs one client of both builds, without contention. Flags that a single client cannot have, such as the
// parts of a mixed strategy, leave it out.
func (f *ab) oneClient(
	ctx context.Context, turns []int, number int, redis lockbench.StoreOptions, folder string,
) error {
	if f.crowded != "" {
		return nil
	}
	pair, err := f.pair(ctx, turns, number, f.flagsOfOne(number), redis, folder, "alone-")
	if known, ok := errors.AsType[*exit](err); ok && known.code == ExitConfig && number == 1 {
		f.crowded, _, _ = strings.Cut(err.Error(), "\n")
		return nil
	}
	if err == nil {
		f.base.Alone, f.head.Alone = append(f.base.Alone, pair[0]), append(f.head.Alone, pair[1])
	}
	return err
}

// flagsOfOne returns the flags of a run of one client with the strategies of FLAGS. It is as short as counts allow.
func (f *ab) flagsOfOne(pair int) []string {
	flags := []string{"--no-baselines", "--seed", strconv.Itoa(pair), "--clients", "1", "--instances", "1"}
	runs, _ := ofRuns(f.runs)
	length := []string{"--iterations", "300", "--warmup", "0s", "--hold", "1ms"}
	for _, list := range runs.strategies {
		flags = append(flags, "--strategy", list)
		if strings.Contains(list, "exec:") { // drivers know no iterations
			length = []string{"--duration", "500ms", "--warmup", "100ms", "--hold", "1ms"}
		}
	}
	return append(flags, length...)
}

// flagsOf returns the flags of the runs of a pair: the user's come last and count. A workload may have a
// duration of its own.
func (f *ab) flagsOf(pair int) []string {
	usual := []string{"--no-baselines", "--seed", strconv.Itoa(pair)}
	if runs, in := ofRuns(f.runs); runs.file == "" && runs.all == "" {
		if usual = append(usual, "--warmup", "500ms"); !in.set.Changed("iterations") {
			usual = append(usual, "--duration", "2s")
		}
	}
	return append(usual, f.runs...)
}

// order returns for each pair whether the head goes first: in half of the pairs, in an
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
