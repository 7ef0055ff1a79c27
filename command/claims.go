package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/claims"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/workloads"
	"github.com/lockbench/lockbench/workloads/presets"
)

// claimsFlags are those of the command.
type claimsFlags struct {
	redis   lockbench.StoreOptions
	rounds  int // replaces the claims' rounds; 0 means theirs
	title   string
	outputs []string
	counter bool
	list    bool
	dryRun  bool
	quiet   bool
}

func (a *app) claims() *cobra.Command {
	f := &claimsFlags{redis: lockbench.StoreOptions{Address: "auto"}}
	cmd := &cobra.Command{
		Use:   "claims [NUMBER|FILE.yaml]...",
		Short: "Test what is said of Redis locks on this machine",
		Long: "Carry out the experiment of each claim, or of some, or of your own files, and say whether it is\n" +
			"confirmed, refuted or qualified, with the figures and the commands that show them again.\n" +
			"Inconclusive proves nothing: rounds disagreed, or figures could not be had or trusted.\n" +
			"It ends with 0 whatever the verdicts; docs/CONTRIBUTING.md tells how a file is written.\n" +
			"With --counter each figure is measured beside a counter-case, such as a lock that is broken on\n" +
			"purpose, with which it must come out on the other side of its limit; it ends with 99 if one does not.",
		Example: "  lockbench claims --list\n  lockbench claims 5 8 mine.yaml\n  lockbench claims --counter 5\n" +
			"  lockbench claims -o table -o json=claims.json -o markdown=docs/evidence/CLAIMS.md",
		Args:               cobra.ArbitraryArgs,
		ValidArgsFunction:  completeClaims,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
	}
	flags := cmd.Flags()
	f.register(flags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		given := source{set: flags}
		given.readEnvironment()
		chosen, err := chooseClaims(args)
		if flags.Changed("rounds") {
			err = errors.Join(err, f.override(chosen))
		}
		if f.counter {
			return a.counter(cmd.Context(), f, args, chosen, &given, err)
		}
		outputs, wrong := parseOutputs(f.outputs, "table", claimsFormats())
		bench := a.bench(f)
		if faults := a.problems(given, err, wrong, f.redis.Validate(), bench.Check(chosen), clashes(f.reads(args, chosen), places(outputs))); faults != nil {
			return faults
		}
		a.warn(given.renamed(idleRedis(flags, f.redis))...)
		if f.list && flags.Changed("output") {
			a.warn(given.renamed([]string{"--output has no effect with --list"})...)
		}
		switch {
		case f.list:
			return printed(listClaims(a.stdout, chosen))
		case f.dryRun:
			return printed(showClaims(a.stdout, bench, chosen, outputs))
		}
		return a.test(cmd.Context(), bench, chosen, f.title, outputs)
	}
	return cmd
}

func (f *claimsFlags) register(set *pflag.FlagSet) {
	set.SortFlags = false
	addSwitch(set, &f.list, "list", "", "say what there is and measure nothing")
	addSwitch(set, &f.counter, "counter", "", "measure each figure with and without its counter-case, too")
	registerRedis(set, &f.redis)
	set.Var(textValue("image", &f.redis.Image), "image", "container image of Redis")
	set.VarP(listValue("format", &f.outputs), "output", "o", strings.Join(claimsFormats().names(), ", ")+"; with =FILE to write a file; repeatable (default table)")
	set.Var(intValue(&f.rounds), "rounds", "rounds of each run, in place of what the claims say: more of them where rounds disagreed")
	set.Var(textValue("text", &f.title), "title", "heading of the Markdown page")
	addSwitch(set, &f.quiet, "quiet", "q", "no progress on standard error")
	addSwitch(set, &f.dryRun, "dry-run", "", "print the experiments and how long they will take, and touch no server")
}

// override replaces the rounds of all claims.
func (f *claimsFlags) override(all []claims.Claim) error {
	if f.rounds < 1 {
		return fmt.Errorf("--rounds must be at least 1, not %d", f.rounds)
	}
	for i := range all {
		all[i].Rounds = f.rounds
	}
	return nil
}

// reads returns the claim files, and the files that their command lines name.
func (f *claimsFlags) reads(words []string, chosen []claims.Claim) []file {
	files := append(reads("NUMBER|FILE.yaml", words...), reads("--ca-file", f.redis.CAFile)...)
	for _, claim := range chosen {
		for _, run := range claim.Runs {
			asked, _, _ := parseClaimed(strings.Fields(run.Line)) // its errors are reported elsewhere
			files = append(files, asked.reads()...)
		}
	}
	return files
}

func claimsFormats() formats[*claims.Document] {
	return formats[*claims.Document]{one: map[string]writer[*claims.Document]{
		"table":    claims.WriteTable,
		"json":     plain(claims.WriteJSON),
		"markdown": plain(claims.WriteMarkdown),
	}}
}

// bench carries out the claims' command lines as this command does, but ignores the
// environment: others must be able to reproduce the results.
func (a *app) bench(f *claimsFlags) *claims.Bench {
	b := &claims.Bench{Plan: planOf, Run: lockbench.Run, Generators: inProcesses, Redis: f.redis}
	if !f.quiet {
		b.Say = a.say
	}
	return b
}

// planOf returns the plan of a claim's line.
func planOf(words []string) (lockbench.Plan, error) {
	_, plan, err := parseClaimed(words)
	return plan, err
}

// claimable says whether a claim's line may give a flag of run. Whoever carries out a claim of somebody
// else trusts it with figures, not with servers, programs, images and outputs.
func claimable(flag string) bool {
	ofWorkload := func(f workloads.Field) bool { return f.Name == flag }
	return slices.Contains([]string{"strategy", "workload", "topology", "durability"}, flag) ||
		slices.ContainsFunc(workloads.Fields(), ofWorkload)
}

// parseClaimed parses a claim's line as run parses its flags.
func parseClaimed(words []string) (*flags, lockbench.Plan, error) {
	f := newFlags()
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.Usage = func() {}
	f.register(set)
	problems := unknownFlags(set, words)
	if len(problems) == 0 {
		if err := set.Parse(words); err != nil {
			problems = append(problems, err)
		}
	}
	for _, word := range set.Args() {
		problems = append(problems, fmt.Errorf("%q is no flag", word))
	}
	set.Visit(func(flag *pflag.Flag) {
		if !claimable(flag.Name) {
			problems = append(problems, fmt.Errorf("--%s is not for the claim to say", flag.Name))
		}
	})
	if _, err := presets.Open(f.file); f.file != "" && err != nil { // which quotes the file
		problems = append(problems, fmt.Errorf(
			"--workload: %s is no sound workload, lockbench --workload %s --dry-run says why", f.file, f.file))
		f.file = ""
	}
	f.given.origins = workloads.Origins{}
	plan, wrong := f.read()
	return f, plan, f.given.named(append(problems, wrong...))
}

// chooseClaims returns the claims with these numbers and from these files; all claims
// if words is empty. The error names every unknown one.
func chooseClaims(words []string) ([]claims.Claim, error) {
	all, err := claims.All()
	if err != nil || len(words) == 0 {
		return all, err
	}
	var chosen []claims.Claim
	var problems []error
	for _, word := range words {
		number, err := strconv.Atoi(word)
		if err != nil {
			claim, err := readClaim(word)
			chosen, problems = append(chosen, claim), append(problems, err)
			continue
		}
		at := slices.IndexFunc(all, func(c claims.Claim) bool { return c.Number == number })
		if at < 0 {
			problems = append(problems, fmt.Errorf("there is no claim %d (lockbench claims --list)", number))
			continue
		}
		chosen = append(chosen, all[at])
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return chosen, nil
}

func readClaim(file string) (claims.Claim, error) {
	text, err := untrusted.ReadFile(file)
	if err != nil {
		return claims.Claim{}, fmt.Errorf("read a claim: %w", err)
	}
	return claims.Parse(file, text)
}

func completeClaims(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	all, _ := claims.All()
	var offered []string
	for _, c := range all {
		offered = append(offered, c.Name()+"\t"+c.Says)
	}
	return offered, cobra.ShellCompDirectiveDefault
}

func listClaims(w io.Writer, all []claims.Claim) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range all {
		fmt.Fprintf(columns, "%s\t%s\n", c.Name(), c.Says)
	}
	return columns.Flush()
}

// showClaims prints what would be done.
func showClaims[T any](w io.Writer, bench *claims.Bench, all []claims.Claim, outputs []output[T]) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range all {
		fmt.Fprintf(columns, "%s\t%s\n", c.Name(), c.Says)
		for _, run := range c.Runs {
			fmt.Fprintf(columns, "\t%s\n", c.Command(run))
		}
	}
	for _, o := range outputs {
		fmt.Fprintf(columns, "output\t%s\n", o)
	}
	fmt.Fprintf(columns, "expected\tabout %v\n", bench.Expected(all).Round(time.Second))
	return columns.Flush()
}

// test carries the claims out and writes the verdicts.
func (a *app) test(ctx context.Context, bench *claims.Bench, chosen []claims.Claim, title string, outputs []output[*claims.Document]) error {
	document, err := bench.Test(ctx, chosen)
	document.Title, document.Libraries = title, libraries(chosen)
	revision(&document.Tool)
	if err := saveAll(a, outputs, document); err != nil {
		return &exit{ExitFailure, err}
	}
	switch {
	case document.Interrupted:
		return &exit{ExitInterrupted, errors.New("interrupted, claims are missing")}
	case err != nil:
		return err
	case len(document.Invalid()) > 0:
		return &exit{ExitInvalid, fmt.Errorf("figures that cannot be trusted: claim %s", strings.Join(document.Invalid(), ", "))}
	}
	return nil
}
