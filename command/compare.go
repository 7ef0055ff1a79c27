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
		Short: "Say whether one set of reports is better or worse than another",
		Long: "Compare two sets of reports written by lockbench -o json=FILE. BASE and HEAD are each a file,\n" +
			"a directory or a quoted glob. A report is a session and counts once, with the median of its\n" +
			"runs: 4 a side are needed to tell anything, more with several strategies, and 6 for an interval.\n" +
			"With fewer it shows the figures, says undecided and how many it needs, and ends with 0.\n" +
			"It ends with 110 if HEAD is worse by the primary metric (--metric), with --strict by any, with\n" +
			"111 if it broke a guarantee, with 112 if no run can be trusted. Only sessions that were recorded\n" +
			"in turns can end with 110: between two blocks the machine may have changed, and the verdict is\n" +
			"undecided. For builds of your own, ab is the better judge: it takes turns in pairs.",
		Example: "  for i in 1 2 3 4; do for b in before after; do ./$b -s pubsub -o json=$b-$i.json; done; done\n" +
			"  lockbench compare 'before-*.json' 'after-*.json'\n" +
			"  lockbench compare main/ mine/ --metric wait_p99 --strict -o markdown=comment.md",
		Args:               cobra.ArbitraryArgs,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
	}
	g.register(cmd.Flags())
	addSwitch(cmd.Flags(), &force, "force", "", "compare although workload, machine or Redis differ")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		outputs, err := g.parse()
		if faults := a.problems(source{set: cmd.Flags()}, err, twoArguments(args, "BASE and HEAD are needed, each a file, a directory or a quoted glob"), clashes(reads("BASE or HEAD", args...), places(outputs))); faults != nil {
			return faults
		}
		base, baseErr := a.readSide(args[0])
		head, headErr := a.readSide(args[1])
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
		if err := saveAll(a, outputs, c); err != nil {
			return &exit{ExitFailure, err}
		}
		return judgement(c)
	}
	return cmd
}

// refusal names what is not the same on both sides.
func refusal(different []compare.Difference) error {
	problems := []error{errors.New("these runs were not made under the same conditions, --force compares them all the same")}
	for _, d := range different {
		problems = append(problems, errors.New(d.String()))
	}
	return errors.Join(problems...)
}

// twoArguments returns an error unless there are two arguments.
func twoArguments(args []string, what string) error {
	if len(args) == 2 {
		return nil
	}
	return fmt.Errorf("%s; %d given", what, len(args))
}
