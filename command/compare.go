package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/results/compare"
)

func (a *app) compare() *cobra.Command {
	g := newGate()
	force := false
	cmd := &cobra.Command{
		Use:   "compare BASE HEAD",
		Short: "Say whether one set of runs is better or worse than another",
		Long: "Compare two sets of reports written by lockbench -o json=FILE. BASE and HEAD are each a file,\n" +
			"a directory or a quoted glob; 4 runs a side are needed to tell anything, 6 for an interval.\n" +
			"It ends with 110 if HEAD is worse, 111 if it broke a guarantee, 112 if there are too few runs.\n" +
			"For builds of your own, ab is the better judge: it takes turns.",
		Example: "  lockbench -s pubsub --runs 10 -o json=before.json     # change something, measure again\n" +
			"  lockbench compare before.json after.json\n" +
			"  lockbench compare 'main-*.json' 'mine-*.json' -o markdown=comment.md",
		Args:               cobra.ArbitraryArgs,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
	}
	g.register(cmd.Flags())
	addSwitch(cmd.Flags(), &force, "force", "", "compare although workload, machine or Redis differ")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		outputs, err := g.parse()
		if faults := a.faults(source{set: cmd.Flags()}, err, twoArguments(args, "BASE and HEAD are needed, each a file, a directory or a quoted glob")); faults != nil {
			return faults
		}
		base, baseErr := readSide(args[0])
		head, headErr := readSide(args[1])
		if err := errors.Join(baseErr, headErr); err != nil {
			return err
		}
		if different := compare.Differences(base, head); len(different) > 0 && !force {
			return refusal(different)
		}
		c, err := compare.Unpaired(base, head, g.rules)
		if err != nil {
			return err
		}
		if err := saveAll(outputs, c, a.stdout); err != nil {
			return &exit{ExitFailure, err}
		}
		return judgement(c)
	}
	return cmd
}

// refusal names what is not the same on both sides.
func refusal(different []compare.Difference) error {
	faults := []error{errors.New("these runs were not made under the same conditions, --force compares them all the same")}
	for _, d := range different {
		faults = append(faults, errors.New(d.String()))
	}
	return errors.Join(faults...)
}

// twoArguments is the fault of not having two.
func twoArguments(args []string, what string) error {
	if len(args) == 2 {
		return nil
	}
	return fmt.Errorf("%s; %d given", what, len(args))
}
