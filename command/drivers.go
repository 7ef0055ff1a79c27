package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/drivers"
	"github.com/lockbench/lockbench/internal/driver"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/internal/words"
)

func (a *app) drivers() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "drivers",
		Short:             "List or install drivers of other languages",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.columns(allDrivers(cmd.Context()))
		},
	}
	cmd.AddCommand(a.install())
	return cmd
}

func (a *app) install() *cobra.Command {
	return &cobra.Command{
		Use:   "install LANGUAGE...",
		Short: "Install the drivers of a language",
		Long: "Write the drivers to the user's data directory, $XDG_DATA_HOME/lockbench/drivers or\n" +
			"~/.local/share/lockbench/drivers, and install the libraries of the languages there with pip, npm or\n" +
			"Maven. This build of lockbench fixes their versions and file hashes. Nothing else is changed.\n" +
			"Languages: " + strings.Join(drivers.Languages(), ", ") + ".",
		Example:   "  lockbench drivers install python node\n  lockbench -s exec:redis-py,exec:redlock",
		ValidArgs: drivers.Languages(),
		RunE: func(cmd *cobra.Command, languages []string) error {
			return a.installDrivers(cmd.Context(), languages)
		},
	}
}

// installDrivers writes the drivers of all languages, because they share files. It installs only the libraries of the
// given languages.
func (a *app) installDrivers(ctx context.Context, languages []string) error {
	var problems []error
	if len(languages) == 0 {
		problems = append(problems, fmt.Errorf("at least one language is needed (languages: %s)",
			strings.Join(drivers.Languages(), ", ")))
	}
	for _, language := range languages {
		if !slices.Contains(drivers.Languages(), language) {
			problems = append(problems, fmt.Errorf("there are no drivers for the language %q (languages: %s)", language,
				strings.Join(drivers.Languages(), ", ")))
		}
	}
	directory, err := driver.InstallDirectory()
	if err := errors.Join(append(problems, err)...); err != nil {
		return &exit{ExitConfig, err}
	}
	if err := drivers.Write(directory); err != nil {
		return fmt.Errorf("install drivers: %w", err)
	}
	a.say("installing the libraries of %s in %s", words.And(languages), directory)
	script := filepath.Join(directory, drivers.Script)
	install := exec.CommandContext(ctx, "bash", append([]string{script}, languages...)...)
	install.Stdout, install.Stderr = direct(a.stderr), direct(a.stderr)
	install.Cancel = func() error { return install.Process.Signal(os.Interrupt) }
	install.WaitDelay = 5 * time.Second
	if err := install.Run(); err != nil {
		return &exit{ExitFailure, fmt.Errorf("install drivers: %s: %w", strings.Join(install.Args, " "), err)}
	}
	return a.columns(allDrivers(ctx))
}

// allDrivers starts every driver and returns a table of the drivers with their claims. A driver that cannot be used is
// listed with its error.
func allDrivers(ctx context.Context) [][]string {
	rows := [][]string{{"NAME", "CLAIMS", "LOCK"}}
	found := driver.All()
	for _, name := range slices.Sorted(maps.Keys(found)) {
		hello, err := driver.Greet(ctx, []string{found[name]})
		called := driver.Prefix + untrusted.Printable(name) // a file name may contain control characters
		if err != nil {
			rows = append(rows, []string{called, "–", "cannot be used: " + untrusted.Printable(err.Error())})
			continue
		}
		rows = append(rows, []string{called, hello.Info.Claims.String(), hello.Info.Summary})
	}
	if len(found) == 0 {
		rows = append(rows, []string{
			"none", "", "lockbench drivers install " + strings.Join(drivers.Languages(), "|") + ", or " + driver.PathVariable,
		})
	}
	return rows
}
