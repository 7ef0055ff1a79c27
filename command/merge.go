package command

import (
	"bytes"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/merge"
)

func (a *app) merge() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "merge A.json B.json...",
		Short: "Put the reports of generators that measured together into one",
		Long: "Make one report of those that several lockbenches wrote with -o json=FILE, which measured the same\n" +
			"plan on one Redis at the same time: given the same new --session, one --start-at, and a --seed\n" +
			"each. It ends as a run does: with 111 or 112 if a claim was broken or a run cannot be trusted.",
		Example: "  lockbench -u redis:6379 -s pubsub -c 500 --session may7 --start-at 2026-05-07T12:30:00Z -o json=a.json\n" +
			"  lockbench -u redis:6379 -s pubsub -c 500 --session may7 --start-at 2026-05-07T12:30:00Z --seed 2 -o json=b.json\n" +
			"  lockbench merge a.json b.json -o merged.json && lockbench report merged.json -o merged.html",
		Args:               cobra.ArbitraryArgs,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		ValidArgsFunction:  jsonFiles,
	}
	set := cmd.Flags()
	set.VarP(textValue("file", &output), "output", "o", "write the merged report, as JSON, to this file, or to standard output for -")
	cmd.RunE = func(cmd *cobra.Command, patterns []string) error {
		read, err := a.readFiles(patterns, strict)
		if faults := a.problems(source{set: set}, destination(output, "merged.json"), clashes(reads("A.json", patterns...), []file{written(output)}), err); faults != nil {
			return faults
		}
		var files []merge.File
		for _, f := range read {
			files = append(files, merge.File{Name: f.name, Report: f.report})
		}
		merged, err := merge.Merge(files)
		if err != nil {
			return err
		}
		var encoded bytes.Buffer
		if err := results.WriteJSON(&encoded, merged); err != nil {
			return &exit{ExitFailure, err}
		}
		if err := a.deliver(output, encoded.Bytes()); err != nil {
			return err
		}
		return outcome(cmd.Context(), merged, nil)
	}
	return cmd
}
