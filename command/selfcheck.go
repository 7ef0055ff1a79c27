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
	var outputs []string
	quiet := false
	cmd := &cobra.Command{
		Use:   "selfcheck",
		Short: "Check lockbench's accuracy on this machine",
		Long: "Measure cases whose answer is known from elsewhere, in about half a minute: a stalled server,\n" +
			"waits, holds and orders that are known, a starved client, a lock that lets in two, and a second\n" +
			"reader of INFO. docs/VALIDITY.md explains each.\n" +
			"It ends with 112 if a check fails. An inconclusive one proves nothing and refutes nothing:\n" +
			"the machine was too restless, or the check could not be carried out there.",
		Example:            "  lockbench selfcheck\n  lockbench selfcheck --only order,audit -o table -o json=selfcheck.json",
		Args:               cobra.NoArgs,
		ValidArgsFunction:  cobra.NoFileCompletions,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(listValue("check", &plan.Only), "only", "checks to carry out, of "+strings.Join(selfcheck.Names(), ", ")+"; repeatable (default all)")
	registerRedis(flags, &plan.Redis)
	flags.Var(textValue("image", &plan.Redis.Image), "image", "container image of Redis")
	flags.VarP(listValue("format", &outputs), "output", "o", "table or json, with =FILE to write a file; repeatable (default table)")
	addSwitch(flags, &quiet, "quiet", "q", "no progress on standard error")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		given := source{set: flags}
		given.readEnvironment()
		plan.Only = strings.FieldsFunc(strings.Join(plan.Only, ","), func(r rune) bool { return r == ',' || r == ' ' })
		formatted, err := parseOutputs(outputs, "table", selfcheckFormats())
		if faults := a.problems(given, err, plan.Validate(), clashes(reads("--ca-file", plan.Redis.CAFile), places(formatted))); faults != nil {
			return faults
		}
		a.warn(given.renamed(idleRedis(flags, plan.Redis))...)
		if !quiet {
			plan.Progress = func(what string) { a.say("%s", what) }
		}
		found, err := selfcheck.Run(cmd.Context(), plan)
		if found == nil {
			return err
		}
		if err := saveAll(a, formatted, found); err != nil {
			return &exit{ExitFailure, err}
		}
		return proven(cmd.Context(), found, err)
	}
	return cmd
}

func selfcheckFormats() formats[*selfcheck.Document] {
	return formats[*selfcheck.Document]{one: map[string]writer[*selfcheck.Document]{
		"table": selfcheck.WriteTable,
		"json":  plain(selfcheck.WriteJSON),
	}}
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
