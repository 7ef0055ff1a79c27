package command

import (
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/internal/driver"
)

func (a *app) drivers() *cobra.Command {
	return &cobra.Command{
		Use:               "drivers",
		Short:             "List the drivers of locks in other languages, and what they lack",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.columns(allDrivers(cmd.Context()))
		},
	}
}

// allDrivers starts every driver and asks what it is.
func allDrivers(ctx context.Context) [][]string {
	rows := [][]string{{"NAME", "CLAIMS", "LOCK"}}
	found := driver.All()
	for _, name := range slices.Sorted(maps.Keys(found)) {
		hello, err := driver.Greet(ctx, []string{found[name]})
		if err != nil {
			rows = append(rows, []string{driver.Prefix + name, "–", "cannot be used: " + err.Error()})
			continue
		}
		rows = append(rows, []string{driver.Prefix + name, hello.Info.Claims.String(), hello.Info.Summary})
	}
	if len(found) == 0 {
		rows = append(rows, []string{"none", "", "in drivers and " + driver.PathVariable + ": see docs/DRIVERS.md"})
	}
	return rows
}
