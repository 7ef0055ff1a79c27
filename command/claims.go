package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/claims"
	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// claimsFlags holds the values of the flags of lockbench claims.
type claimsFlags struct {
	redis   lockbench.StoreOptions
	rounds  int // rounds of each run; 0 means the number in the claim
	title   string
	outputs *outputs[*claims.Document]
	counter bool
	list    bool
	dryRun  bool
	quiet   bool
}

func (a *app) claims() *cobra.Command {
	f := &claimsFlags{redis: lockbench.StoreOptions{Address: "auto"}, outputs: applicationOutputs(
		map[string]writer[*claims.Document]{"markdown": plain(document.WriteMarkdown[*claims.Document])})}
	cmd := &cobra.Command{
		Use:   "claims [NUMBER|FILE.yaml]...",
		Short: "Re-test common claims about Redis locks",
		Long: "Run the experiment of each claim, of some, or of your own files, and report whether the claim is\n" +
			"confirmed, refuted or qualified, with the figures and the commands that measure them again. An\n" +
			"inconclusive claim is neither proved nor refuted: rounds disagreed, or figures are unknown or\n" +
			"cannot be trusted.\n\nThe exit code is 0 whatever the verdicts; docs/CONTRIBUTING.md shows how to\n" +
			"write a file. --counter also measures a counter-case of each figure, such as a lock that is broken\n" +
			"on purpose, in which the figure must miss its limit; the exit code is 99 if a counter-case fails.",
		Example: "  lockbench claims --list\n  lockbench claims 5 8 mine.yaml\n  lockbench claims --counter 5\n" +
			"  lockbench claims -o table -o json=claims.json \\\n    -o markdown=docs/evidence/CLAIMS.md",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeClaims,
	}
	flags := cmd.Flags()
	f.register(flags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		given := a.input(flags).variables(flags)
		chosen, unknown := chooseClaims(args)
		if flags.Changed("rounds") && f.rounds < 1 {
			unknown = errors.Join(unknown, fmt.Errorf("--rounds must be at least 1, not %d", f.rounds))
		}
		for i, claim := range chosen {
			chosen[i] = claim.Countered(f.counter)
			chosen[i].Rounds = cmp.Or(f.rounds, claim.Rounds)
		}
		outputs := f.outputs.all(f.quiet)
		bench := a.bench(f)
		clash := check(outputs, f.reads(args, chosen)...)
		var wrong error
		if !f.list { // --list must also work for a claim whose lock was left out of this build
			wrong = bench.Check(chosen)
		}
		if err := given.refuse(unknown, f.redis.Validate(), wrong, clash); err != nil {
			return err
		}
		switch {
		case f.list:
			return a.columns(claimRows(chosen, false))
		case f.dryRun:
			return a.columns(append(claimRows(chosen, true), []string{"output", listed(outputs)},
				[]string{"expected", fmt.Sprintf("about %v", bench.Expected(chosen).Round(time.Second))}))
		}
		return a.test(cmd.Context(), bench, chosen, f, outputs)
	}
	return cmd
}

func (f *claimsFlags) register(set *pflag.FlagSet) {
	set.SortFlags = false
	set.BoolVar(&f.list, "list", false, "list the claims and measure nothing")
	set.BoolVar(&f.counter, "counter", false, "also measure the counter-case of each figure")
	f.outputs.register(set)
	set.IntVar(&f.rounds, "rounds", 0,
		"`number` of rounds of each run, in place of the number in the claim")
	set.StringVar(&f.title, "title", "", "heading `text` of the Markdown page")
	registerQuiet(set, &f.quiet)
	set.BoolVar(&f.dryRun, "dry-run", false, "print the experiments and their expected duration, and use no server")
	servers := group("Servers")
	stores{redis: &f.redis}.register(servers, "")
	registerImage(servers, &f.redis)
	addGroups(set, servers)
}

// reads returns the files that the command reads: claim files and the files that the claims' command lines name.
func (f *claimsFlags) reads(words []string, chosen []claims.Claim) []string {
	files := append(slices.Clone(words), f.redis.CAFile)
	for _, claim := range chosen {
		for _, run := range claim.Runs {
			files = append(files, readBy(strings.Fields(run.Line))...)
		}
	}
	return files
}

// bench returns a Bench that executes the claims' command lines as run would, except that it ignores LOCKBENCH_
// variables, so that other people can reproduce the results.
func (a *app) bench(f *claimsFlags) *claims.Bench {
	b := &claims.Bench{Plan: planOf, Run: lockbench.Run, Generators: inProcesses, Redis: f.redis}
	if !f.quiet {
		b.Say = a.say
	}
	return b
}

// planOf parses a claim's command line as run parses its flags. It accepts only the flags for strategies, for the
// workload, and for the servers' topology and durability. A claim file may come from another person, so it must not
// choose addresses, programs, images or output files.
func planOf(words []string) (lockbench.Plan, error) {
	f, set, err := parsed(words, false)
	f.others = true
	cmd := &cobra.Command{Use: "lockbench"}
	cmd.Flags().AddFlagSet(set)
	problems := []error{misused(cmd, err)}
	for _, word := range set.Args() {
		problems = append(problems, fmt.Errorf("%q is neither a flag nor the value of a flag", word))
	}
	allowed := []string{"strategy", "workload", "topology", "durability"}
	for _, field := range workloads.Fields() {
		allowed = append(allowed, field.Name)
	}
	set.Visit(func(flag *pflag.Flag) {
		if !slices.Contains(allowed, flag.Name) {
			problems = append(problems, fmt.Errorf("--%s is not allowed in the command line of a claim", flag.Name))
		}
	})
	in := &input{set: set, origins: workloads.Origins{}}
	if err := in.workload(f.file, &f.workload); err != nil { // err quotes the file, which may hold a secret
		problems = append(problems,
			fmt.Errorf("--workload: %s is not a valid workload: lockbench --workload %s --dry-run lists its errors",
				f.file, f.file))
	}
	plan, wrong := f.plan()
	return plan, in.refuse(append(problems, wrong)...)
}

// chooseClaims returns the claims that words names, each by its number or its file. It returns all claims if words is
// empty.
func chooseClaims(words []string) ([]claims.Claim, error) {
	all, err := claims.All()
	if err != nil || len(words) == 0 {
		return all, err
	}
	var chosen []claims.Claim
	for _, word := range words {
		claim, err := chooseClaim(all, word)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, claim)
	}
	return chosen, nil
}

// chooseClaim returns the claim with the number in word. If word is not a number, it is the name of a file that
// contains a claim.
func chooseClaim(all []claims.Claim, word string) (claims.Claim, error) {
	number, err := strconv.Atoi(word)
	if err != nil {
		text, err := untrusted.ReadFile(word)
		if err != nil {
			return claims.Claim{}, fmt.Errorf("read a claim: %w", err)
		}
		return claims.Parse(word, text)
	}
	at := slices.IndexFunc(all, func(c claims.Claim) bool { return c.Number == number })
	if at < 0 {
		return claims.Claim{}, fmt.Errorf("there is no claim %d: lockbench claims --list prints all claims", number)
	}
	return all[at], nil
}

func completeClaims(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	all, _ := claims.All()
	var offered []string
	for _, c := range all {
		offered = append(offered, c.Name()+"\t"+string(c.Says))
	}
	return offered, cobra.ShellCompDirectiveDefault
}

// claimRows returns a table of the claims, with their command lines if commands is set.
func claimRows(all []claims.Claim, commands bool) (rows [][]string) {
	for _, c := range all {
		rows = append(rows, []string{c.Name(), string(c.Says)})
		for _, run := range c.Runs {
			if commands {
				rows = append(rows, []string{"", c.Command(run)})
			}
		}
	}
	return rows
}

// test runs the experiments of the claims and writes the verdicts. It returns an error if a counter-case failed or a
// figure cannot be trusted. A refuted claim is not an error.
func (a *app) test(
	ctx context.Context, bench *claims.Bench, chosen []claims.Claim, f *claimsFlags, outputs []output[*claims.Document],
) error {
	complete := func(document *claims.Document) *claims.Document {
		document.Title, document.Libraries = f.title, libraries(chosen)
		revision(&document.Tool)
		return document
	}
	bench.Ended = func(document *claims.Document) {
		document.Interrupted = true
		a.ended.keep(func() error { return writeAll(a, outputs, complete(document), f.quiet) })
	}
	document, err := bench.Test(ctx, chosen)
	if err := saveAll(a, outputs, complete(document), f.quiet); err != nil {
		return err
	}
	counters, failed := document.CounterCases()
	switch {
	case document.Interrupted:
		return &exit{ExitInterrupted, errors.New("interrupted; some claims are missing")}
	case err != nil:
		return err
	case len(failed) > 0:
		err := fmt.Errorf("%d of %d counter-cases failed; first: %s",
			len(failed), counters, failed[0])
		return &exit{ExitThreshold, err}
	case len(document.Invalid()) > 0:
		return &exit{ExitInvalid, fmt.Errorf("the figures of claim %s cannot be trusted",
			strings.Join(document.Invalid(), ", "))}
	}
	return nil
}

// client is the module of the Redis client that most strategies use.
const client = "github.com/redis/go-redis/v9"

// libraries returns go-redis and the modules of the third-party libraries that the claims measure, each followed by its
// version in this build. It returns nil if the claims measure no third-party library.
func libraries(all []claims.Claim) []string {
	var named []string
	for _, claim := range all {
		for _, run := range claim.Runs {
			plan, _ := planOf(strings.Fields(run.Line)) // its errors are reported elsewhere
			for _, v := range plan.Strategies {
				if module := v.Info().Library; module != "" && !slices.Contains(named, module) {
					named = append(named, module)
				}
			}
		}
	}
	if len(named) == 0 {
		return nil
	}
	return versions(append(named, client))
}

// versions returns each of the given modules that this build contains, followed by its version. It sorts them by path.
func versions(modules []string) []string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	var all []string
	for _, module := range info.Deps { // sorted by path
		if slices.Contains(modules, module.Path) {
			all = append(all, module.Path+" "+module.Version)
		}
	}
	return all
}

// inProcesses runs a command line in several generator processes of this program against one Redis, and returns their
// merged report.
func inProcesses(
	ctx context.Context, words []string, processes int, options lockbench.StoreOptions,
) (report *results.Report, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	folder, err := os.MkdirTemp("", "lockbench-generators-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the reports: %w", err)
	}
	defer os.RemoveAll(folder)
	redis, err := lockbench.OpenRedis(ctx, options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, redis.Close(context.WithoutCancel(ctx))) }()

	number := strconv.Itoa(processes)
	reports, problems := make([]*results.Report, processes), make([]error, processes)
	var all sync.WaitGroup
	for i := range processes {
		index := strconv.Itoa(i)
		one := child{
			program: program, flags: slices.Concat(words, []string{"--generators", number, "--generator", index}),
			redis: redis.Options(),
		}
		if i == 0 {
			one.report = filepath.Join(folder, "report.json")
		}
		all.Go(func() { reports[i], problems[i] = one.run(ctx) })
	}
	all.Wait()
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	report = reports[0]
	report.Redis = redis.Describe() // the child processes know only the address
	return report, nil
}
