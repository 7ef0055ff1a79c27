package command

import (
	"bytes"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/merge"
)

func (a *app) merge() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "merge A.json B.json...",
		Short: "Merge the reports of generators that measured together",
		Long: "Make one report of those that several lockbenches wrote with -o json=FILE, which measured the same\n" +
			"plan on one Redis at the same time: given the same new --session, one --start-at, and a --seed\n" +
			"each. It ends as a run does: with 111 or 112 if a claim was broken or a run cannot be trusted.",
		Example: "  export LOCKBENCH_REDIS=redis:6379 LOCKBENCH_SESSION=may7\n" +
			"  export LOCKBENCH_START_AT=2026-05-07T12:30:00Z\n" +
			"  lockbench -s pubsub -c 500 -o json=a.json             # on one machine\n" +
			"  lockbench -s pubsub -c 500 --seed 2 -o json=b.json    # on another\n" +
			"  lockbench merge a.json b.json -o merged.json && lockbench report merged.json -o merged.html",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: jsonFiles,
	}
	set := cmd.Flags()
	set.StringVarP(&file, "output", "o", "", "`file` for the merged report, as JSON, or - for standard output")
	cmd.RunE = func(cmd *cobra.Command, patterns []string) error {
		output, wrong := single(file, "merged.json")
		files, err := a.readFiles(patterns, strict)
		if err := a.input(set).refuse(wrong, check(output, allReports(patterns)...), err); err != nil {
			return err
		}
		merged, err := merge.Merge(files)
		if err != nil {
			return err
		}
		var encoded bytes.Buffer
		if err := results.WriteJSON(&encoded, merged); err != nil {
			return &exit{ExitFailure, err}
		}
		if err := saveAll(a, output, encoded.Bytes()); err != nil {
			return err
		}
		return outcome(cmd.Context(), merged, nil)
	}
	return cmd
}
