package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	conformance "github.com/lockbench/lockbench/internal/apps/check"
	"github.com/lockbench/lockbench/internal/driver"
	"github.com/lockbench/lockbench/strategies/locktest"
)

func (a *app) check() *cobra.Command {
	var o conformance.Options
	out := applicationOutputs[*conformance.Document](nil)
	quiet := false
	cmd := &cobra.Command{
		Use:   "check NAME",
		Short: "Run the conformance suite on a lock",
		Long: "Start Redis servers and test the claims of a lock on them, within a few minutes: exclusion, recovery,\n" +
			"cancelled waits, servers that die or reply late, broken connections.\n\nThe exit code is 111 if\n" +
			"a claim does not hold, and 112 if a check has no verdict or no check can run.",
		Example: "  lockbench check exec:redis-py\n" +
			"  lockbench check 'exec:go pubsub' --only fencing \\\n    -o table -o json=check.json",
		Args:              oneLock,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&o.Only, "only", nil, "`check` to run; repeatable (default all)")
	out.register(flags)
	registerQuiet(flags, &quiet)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		given := a.input(flags).variables(flags)
		known, notes := recognised(args, true)
		variants, unknown := driver.Parse(driver.Asked(cmd.Context()), known...)
		if unknown == nil && len(variants) != 1 {
			unknown = errors.New("check takes one lock at a time: run lockbench check once for each lock")
		}
		if unknown == nil && len(variants[0].Parts) > 0 {
			unknown = errors.New("check takes no mixed strategy: check each of its parts")
		}
		if unknown == nil {
			o.Strategy = variants[0]
			unknown = o.Validate()
		}
		if err := given.refuse(unknown, check(out.all(quiet))); err != nil {
			return err
		}
		if !quiet {
			for _, note := range notes {
				a.say("%s", note)
			}
			o.Progress = func(name string) { a.say("%s", name) }
		}
		found, err := conformance.Run(cmd.Context(), o)
		if err != nil {
			return err
		}
		if err := saveAll(a, out.all(quiet), found, quiet); err != nil {
			return err
		}
		return conforms(cmd.Context(), found)
	}
	return cmd
}

// oneLock returns an error unless there is exactly one argument.
func oneLock(_ *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf("check takes exactly one NAME, such as lockbench check pubsub, not %d", len(args))
}

// conforms returns an error with its exit code if a check failed or has no verdict, if nothing was checked, or if the
// checks were interrupted. It returns nil if the lock conforms.
func conforms(ctx context.Context, found *conformance.Document) error {
	broken, unknown := found.With(locktest.Broken), found.With(locktest.NotJudged)
	untried := found.With(locktest.NotTried)
	switch {
	case found.Interrupted && ctx.Err() != nil:
		return &exit{ExitInterrupted, errors.New("interrupted; some checks are missing")}
	case len(broken) > 0:
		return &exit{ExitSafety, fmt.Errorf("a claimed guarantee did not hold: %s", strings.Join(broken, ", "))}
	case len(unknown) > 0:
		return &exit{ExitInvalid, fmt.Errorf("checks without a verdict: %s", strings.Join(unknown, ", "))}
	case len(untried) > 0 && len(found.With(locktest.Passed)) == 0:
		return &exit{ExitInvalid, fmt.Errorf("nothing was checked: %s", found.Because(untried[0]))}
	}
	return nil
}
