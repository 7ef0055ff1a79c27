package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/selfcheck"
)

func (a *app) selfcheck() *cobra.Command {
	plan := selfcheck.Options{Redis: lockbench.StoreOptions{Address: "auto"}, Effort: selfcheck.Full()}
	out := applicationOutputs[*selfcheck.Document](nil)
	quiet := false
	cmd := &cobra.Command{
		Use:   "selfcheck",
		Short: "Check lockbench's accuracy on this machine",
		Long: "Measure cases whose answer is known from elsewhere, in about half a minute: a stalled server,\n" +
			"waits, holds and orders that are known, a starved client, a lock that lets in two, and a second\n" +
			"reader of INFO. docs/VALIDITY.md explains each.\n" +
			"It ends with 112 if a check fails. An inconclusive one proves nothing and refutes nothing:\n" +
			"the machine was too busy, or the check cannot run there.",
		Example: "  lockbench selfcheck\n" +
			"  lockbench selfcheck --only order,audit -o table -o json=selfcheck.json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&plan.Only, "only", nil,
		"`checks` to run, of "+strings.Join(selfcheck.Names(), ", ")+"; repeatable (default all)")
	stores{redis: &plan.Redis}.register(flags, "")
	registerImage(flags, &plan.Redis)
	out.register(flags)
	registerQuiet(flags, &quiet)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		given := a.input(flags).variables(flags)
		plan.Only = strings.FieldsFunc(strings.Join(plan.Only, ","), func(r rune) bool { return r == ',' || r == ' ' })
		if err := given.refuse(plan.Validate(), check(out.all(), plan.Redis.CAFile)); err != nil {
			return err
		}
		if !quiet {
			plan.Progress = func(what string) { a.say("%s", what) }
		}
		found, err := selfcheck.Run(cmd.Context(), plan)
		if found == nil {
			return err
		}
		if err := saveAll(a, out.all(), found); err != nil {
			return err
		}
		return proven(cmd.Context(), found, err)
	}
	return cmd
}

// proven returns an error for the checks that failed; nil if none failed.
func proven(ctx context.Context, s *selfcheck.Document, err error) error {
	switch failed := s.With(selfcheck.Fail); {
	case s.Interrupted && ctx.Err() != nil:
		return &exit{ExitInterrupted, errors.New("interrupted, checks are missing")}
	case len(failed) > 0:
		return &exit{ExitInvalid, errors.Join(fmt.Errorf("checks that failed: %s", strings.Join(failed, ", ")), err)}
	case err != nil:
		return &exit{ExitFailure, err}
	default:
		return nil
	}
}
