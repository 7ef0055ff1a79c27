// Package command is lockbench's command line. The author of a lock registers a
// strategy and calls Main:
//
//	func main() {
//		os.Exit(command.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
//	}
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/untrusted"
)

// Main runs the command with these arguments, without the program's name, and
// returns the exit code, one of the Exit constants. Environment variables named
// LOCKBENCH_FLAG stand in for flags that are not given.
//
// The first SIGINT, SIGTERM or SIGHUP ends the measuring early and cleanly, as does
// the end of ctx. After a second signal Main returns at once while its goroutines
// still run: the caller must end the process.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	servers.Quiet()
	a := &app{stdout: stdout, stderr: &locked{to: stderr}}
	return a.interruptible(ctx, func(ctx context.Context) int { return a.execute(ctx, args, stdin) })
}

// Root returns the command with all its subcommands, to write manual pages of it.
func Root() *cobra.Command { return (&app{stdout: io.Discard, stderr: &locked{to: io.Discard}}).root() }

// app is one call of Main.
type app struct {
	stdout io.Writer
	stderr *locked // signals and work write to it from different goroutines
}

// execute runs the command line and returns its exit code.
func (a *app) execute(ctx context.Context, args []string, stdin io.Reader) int {
	root := a.root()
	root.SetIn(stdin)
	root.SetArgs(append([]string{}, args...))
	completes := strings.HasPrefix(strings.Join(args, " "), cobra.ShellCompRequestCmd) // also without descriptions
	if cmd, _, err := root.Find(args); err == nil && !completes {
		makePatient(cmd.Flags())
	}
	err := root.ExecuteContext(ctx)
	a.complain(err)
	code := exitCode(ctx, err)
	if code == ExitStopped {
		a.say("interrupted before there were any results")
	}
	return code
}

// complain writes an error, with our prefix on each line, and what to do about servers' errors, each
// advice once.
func (a *app) complain(err error) {
	if err == nil {
		return
	}
	var advice []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		a.say("%s", line)
		if next := servers.NextStep(line); next != "" && !strings.Contains(line, next) &&
			!slices.Contains(advice, next) {
			advice = append(advice, next)
		}
	}
	for _, next := range advice {
		a.say("next: %s", next)
	}
}

// say writes one line to standard error. It may quote a server's error, a document or a file's name.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.stderr, "lockbench: %s\n", untrusted.Printable(fmt.Sprintf(format, args...)))
}

func (a *app) warn(lines ...string) {
	for _, line := range lines {
		a.say("warning: %s", line)
	}
}

// columns prints rows of cells in columns.
func (a *app) columns(rows [][]string) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return printed(w.Flush()) // it returns the errors of earlier writes too
}

func (a *app) root() *cobra.Command {
	root := a.run("lockbench")
	root.Long = intro
	root.Example = examples
	root.Version = lockbench.Version()
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetVersionTemplate(versionLine() + "\n")
	root.SetUsageTemplate(usageText)
	root.SetFlagErrorFunc(unknownFlag)
	root.SuggestionsMinimumDistance = 2
	root.AddCommand(a.run("run"), a.compare(), a.ab(), a.report(), a.merge(), a.selfcheck(), a.doctor(), a.claims(),
		a.advise(), a.list(), a.drivers(), a.check(), a.clean(), a.version())
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil { // cobra's shows its help and ends with 0
		completion.RunE = func(*cobra.Command, []string) error {
			return errors.New("which shell is needed: bash, fish, powershell or zsh")
		}
	}
	return root
}

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use:               "version",
		Short:             "Print the version",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine())
			return printed(err)
		},
	}
}

func versionLine() string {
	return fmt.Sprintf("lockbench %s (%s, %s/%s)", lockbench.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

const intro = `lockbench measures Redis distributed locks: it lets many clients fight for one lock by several
strategies and shows how fast each was, who waited, who starved, what Redis paid, and whether it
really excluded.`

const examples = `  lockbench --strategy spin,pubsub,blpop --clients 500
  lockbench -s 'spin:backoff=fixed,base=5ms,pubsub' --runs 5 -o table -o json=report.json
  LOCKBENCH_REDIS=rediss://user:secret@redis.example:6380 lockbench --strategy pubsub
  lockbench list pubsub`

// usageText is cobra's usage without its repetitions, 100 columns wide, with the environment
// and the exit codes.
const usageText = `Usage:
  {{.UseLine}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if or .IsAvailableCommand (eq .Name "help")}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 100 | trimTrailingWhitespaces}}{{end}}{{if or (eq .Name "run") (not .HasParent)}}

Environment:
  LOCKBENCH_CLIENTS=500 stands in for --clients 500, and so on for every flag: upper case, with _
  for -. Flags go before variables. NO_COLOR turns colours off.

Exit codes:
  0    measured, nothing wrong        105  interrupted, results so far are written
  99   a threshold was crossed        130  interrupted, and not written: before there were
  104  bad flags or configuration          results, twice, or 2 s after SIGTERM
  110  a regression (compare, ab)     111  a guarantee a strategy claims did not hold
  113  Redis unreachable              112  figures that cannot be trusted
  1    anything else{{end}}
`
