package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/selfcheck"
	"github.com/lockbench/lockbench/internal/driver"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/strategies"
)

func (a *app) selfcheck() *cobra.Command {
	plan := selfcheck.Options{Redis: lockbench.StoreOptions{Address: "auto"}, Effort: selfcheck.Full()}
	out := applicationOutputs[*selfcheck.Document](nil)
	quiet := false
	cmd := &cobra.Command{
		Use:   "selfcheck",
		Short: "Check lockbench's accuracy on this machine",
		Long: "Measure cases with a known result, in about twenty seconds: a stalled server, known holds, a lock\n" +
			"that admits two holders, and a second reader of INFO.\n" +
			"docs/VALIDITY.md explains each check.\n\nThe exit code is 112 if a check fails. An inconclusive check\n" +
			"proves nothing: the machine was too busy, or the check cannot run on it.",
		Example: "  lockbench selfcheck\n" +
			"  lockbench selfcheck --only audit,outside \\\n    -o table -o json=selfcheck.json",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&plan.Only, "only", nil,
		"`checks` to run, of "+strings.Join(selfcheck.Names(), ", ")+"; repeatable (default all)")
	out.register(flags)
	registerQuiet(flags, &quiet)
	servers := group("Servers")
	stores{redis: &plan.Redis}.register(servers, "")
	registerImage(servers, &plan.Redis)
	addGroups(flags, servers)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		given := a.input(flags).variables(flags)
		plan.Only = strings.FieldsFunc(strings.Join(plan.Only, ","), func(r rune) bool { return r == ',' || r == ' ' })
		if err := given.refuse(plan.Validate(), check(out.all(quiet), plan.Redis.CAFile)); err != nil {
			return err
		}
		if !quiet {
			plan.Progress = func(what string) { a.say("%s", what) }
		}
		found, err := selfcheck.Run(cmd.Context(), plan)
		if found == nil {
			return err
		}
		if err := saveAll(a, out.all(quiet), found, quiet); err != nil {
			return err
		}
		return proven(cmd.Context(), found, err)
	}
	return cmd
}

// proven returns the error of selfcheck, with its exit code, or nil if no check failed.
func proven(ctx context.Context, s *selfcheck.Document, err error) error {
	switch failed := s.With(selfcheck.Fail); {
	case s.Interrupted && ctx.Err() != nil:
		return &exit{ExitInterrupted, errors.New("interrupted; some checks are missing")}
	case len(failed) > 0:
		return &exit{ExitInvalid, errors.Join(fmt.Errorf("checks that failed: %s", strings.Join(failed, ", ")), err)}
	case err != nil:
		return &exit{ExitFailure, err}
	default:
		return nil
	}
}

func (a *app) clean() *cobra.Command {
	redis := lockbench.StoreOptions{Address: "auto"}
	ask := false
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove what a killed lockbench left behind",
		Long: "Remove what a killed lockbench left behind: its containers and directories on this machine and, with\n" +
			"--redis, its keys on that Redis. Containers, directories and keys of a running lockbench stay. In etcd,\n" +
			"PostgreSQL and ZooKeeper locks end with their sessions, so a killed lockbench leaves nothing there but\n" +
			"the table of --work transaction in PostgreSQL.\n" +
			"\nThe exit code is 104 if clean could not read or remove something on the server.",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	registerServer(cmd.Flags(), &redis)
	cmd.Flags().BoolVar(&ask, "ask-drivers", false,
		"start the drivers that lockbench drivers lists, request the names of their keys, and remove these keys, too")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.input(cmd.Flags()).variables(cmd.Flags()).refuse(); err != nil {
			return err
		}
		var drivers []strategies.Info
		at := store.Options{Address: redis.Address}
		name, _ := store.At(at.Address)                  // Clean reports the error
		if ask && name == store.Redis && !at.Started() { // drivers lock in Redis
			var silent error
			drivers, silent = driver.Infos(cmd.Context())
			for _, err := range flatten(silent) {
				a.warn(fmt.Sprintf("clean does not know the keys of this driver: %v", err))
			}
		}
		swept, err := lockbench.Clean(cmd.Context(), redis, drivers...)
		for _, what := range swept {
			if _, err := fmt.Fprintln(a.stdout, untrusted.Printable(what)); err != nil {
				return printed(err)
			}
		}
		if err == nil && len(swept) == 0 {
			_, err := fmt.Fprintln(a.stdout, "nothing to remove")
			return printed(err)
		}
		return err
	}
	return cmd
}
