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

// ab holds the flags of the command ab, and the pairs of runs measured so far.
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
	at      string        // version, source and topology of Redis, for the report
	longest time.Duration // duration of the longest pair so far
	late    bool          // the rest of the budget is too short for another pair
	crowded string        // reason why a single client was not measured; "" if it is measured
}

// The values of --until. With pairs, ab measures exactly --pairs pairs. With decided, it doubles that number until
// there is a verdict or the budget ends.
const untilPairs, untilDecided = "pairs", "decided"

func (a *app) ab() *cobra.Command {
	f := &ab{gate: newGate(), redis: lockbench.StoreOptions{Address: "auto"}}
	cmd := &cobra.Command{
		Use:   "ab [flags] BASE_BINARY HEAD_BINARY -- [FLAGS]",
		Short: "Compare two builds in interleaved runs",
		Long: "Run two builds of lockbench in turns against one Redis, each with FLAGS, and test the pairs.\n" +
			"Unless FLAGS set other values, a run is 2s long after 500ms of warm-up, without baselines. Each\n" +
			"pair also has a short run of a single client, which measures the commands and round trips of an\n" +
			"acquisition without contention. Environment variables set the flags of ab, not FLAGS. If the times\n" +
			"of this machine scatter too much, the verdict is undecided and names the number of pairs that\n" +
			"would be enough; --until decided doubles the pairs until there is a verdict or the budget ends.\n\n" +
			"The exit code is 110 if the head is worse by the primary metric (--metric), by any metric with\n" +
			"--all-metrics, or if it needs more commands or round trips; 111 if the head broke a guarantee; 112\n" +
			"if no verdict was possible, or if the verdict is undecided and --strict or --until decided is set.",
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

// notAlone lists the flags with which run coordinates several generator processes. ab and record do not allow these
// flags.
const notAlone = "generators generator session join-timeout"

// notOfRuns lists the flags of run that FLAGS must not contain. ab sets them itself, has its own flag of the same name,
// or does not support them.
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
			problems = append(problems, fmt.Errorf("the arguments after -- must not contain --%s", name))
		}
	}
	return errors.Join(problems...)
}

// runnable returns an error unless build is an executable program.
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
	// maxPairs is the limit of --pairs. It is far above any useful number, so it only catches typing errors.
	maxPairs = 1000
	// usualBudget is the default of --budget with --until decided.
	usualBudget = 15 * time.Minute
)

// runPaired measures both builds in pairs, writes the comparison and returns its verdict as an error. After Ctrl-C it
// writes the comparison of the complete pairs.
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
			return &exit{ExitStopped, errors.New("interrupted during the first pair of runs")}
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

// paired measures pairs and compares them. With --until decided it doubles the number of pairs and tests again while
// the verdict is undecided and the budget lasts. Each test has half the alpha of the previous one, so that the
// false-positive rate of all tests together stays below alpha. The comparison is nil if no pair is complete or the
// pairs cannot be compared.
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
		if len(f.head.Reports) == before { // no new pair to test
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

// compared compares all pairs whose two runs are complete.
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

// keepPairs registers the function that writes the comparison of the pairs measured so far. A second signal calls it.
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

// measurePairs measures pairs until there are as many as the parameter pairs says, the budget is too short for another
// pair, or ctx is cancelled. It returns an error if a build cannot be measured.
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
		a.keepPairs(*f, rules) // a shallow copy is enough, because reports are only appended
		f.longest = max(f.longest, time.Since(begun))
		if !f.quiet {
			glance := compare.Glance(compare.Side{Reports: pair[:1]}, compare.Side{Reports: pair[1:]}, f.gate.rules)
			done := a.lines(fmt.Sprintf("[%d/%d] %s", number, pairs, glance))
			fmt.Fprintln(a.stderr, strings.Join(done, "\n"))
		}
	}
	return nil
}

// pair runs each build once with the given flags. turns is the order of the builds: 0 is the base, 1 the head. The file
// name of each report consists of prefix, base or head, and number.
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

// oneClient runs both builds with a single client, without contention. If the first pair shows that a single client is
// not possible with these flags, for example with a mixed strategy, it records the reason and skips later pairs.
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

// flagsOfOne returns the flags for the two runs of a pair with a single client. It keeps the strategies that FLAGS
// selects. The runs are short: they only measure counts per acquisition, which hardly vary.
func (f *ab) flagsOfOne(pair int) []string {
	flags := []string{"--no-baselines", "--seed", strconv.Itoa(pair), "--clients", "1", "--instances", "1"}
	runs, _ := ofRuns(f.runs)
	length := []string{"--iterations", "300", "--warmup", "0s", "--hold", "1ms"}
	for _, list := range runs.strategies {
		flags = append(flags, "--strategy", list)
		if strings.Contains(list, "exec:") { // drivers do not support --iterations
			length = []string{"--duration", "500ms", "--warmup", "100ms", "--hold", "1ms"}
		}
	}
	return append(flags, length...)
}

// flagsOf returns the flags for both runs of a pair. The number of the pair is the seed of both runs. The user's flags
// come last, so they override ab's defaults. With --workload or --file, ab sets no duration, because the file may set
// one.
func (f *ab) flagsOf(pair int) []string {
	usual := []string{"--no-baselines", "--seed", strconv.Itoa(pair)}
	if runs, in := ofRuns(f.runs); runs.file == "" && runs.all == "" {
		if usual = append(usual, "--warmup", "500ms"); !in.set.Changed("iterations") {
			usual = append(usual, "--duration", "2s")
		}
	}
	return append(usual, f.runs...)
}

// order returns, for each pair, whether the head runs first. The seed selects the half of the pairs in which the head
// runs first. As a result, neither side gains from its position or from periodic load on the machine.
func order(pairs int, seed int) []bool {
	headFirst := make([]bool, pairs)
	for i := range headFirst {
		headFirst[i] = i%2 == 1
	}
	shuffle := mathrand.New(mathrand.NewPCG(uint64(seed), uint64(pairs)))
	shuffle.Shuffle(pairs, func(i, j int) { headFirst[i], headFirst[j] = headFirst[j], headFirst[i] })
	return headFirst
}
