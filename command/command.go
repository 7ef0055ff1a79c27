package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/internal/words"
)

// Main runs the command line args and returns one of the Exit constants. args does not include the program's name. If
// --flag is not given, the environment variable LOCKBENCH_FLAG sets it.
//
// The first SIGINT, SIGTERM or SIGHUP ends the measurement early and cleanly, as does the end of ctx. After a second
// signal, at least half a second later, Main writes the completed runs and returns while its goroutines still run: the
// caller must end the process.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	servers.Quiet()
	a := &app{stdout: stdout, stderr: &locked{to: stderr}}
	return a.interruptible(ctx, func(ctx context.Context) int { return a.execute(ctx, args, stdin) })
}

// Root returns lockbench's root command with all subcommands, for a generator of manual pages.
func Root() *cobra.Command { return (&app{stdout: io.Discard, stderr: &locked{to: io.Discard}}).root() }

// app is the state of one call to Main.
type app struct {
	stdout io.Writer
	stderr *locked // the signal handler and the work write from different goroutines
	ended  ended
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
		a.say("interrupted before there were results")
	}
	return code
}

// mostLines limits the lines that a command prints for an error, including the next steps. If there are more, the
// command prints how many lines it omitted.
const mostLines = 20

// complain prints an error, with the prefix on each line. Then it prints each recommended next step once.
func (a *app) complain(err error) {
	if err == nil {
		return
	}
	var lines, advice []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimPrefix(strings.TrimSpace(line), prefix); line == "" { // a child process adds the prefix, too
			continue
		}
		next, said := strings.CutPrefix(line, "next: ")
		if !said {
			lines = append(lines, a.message(line)...)
			next = cmp.Or(leftOut(buildTags(), line), servers.NextStep(line))
		}
		if next == "" || !said && strings.Contains(line, next) {
			continue
		}
		if step := a.message("next: " + next); !slices.Contains(advice, step[0]) {
			advice = append(advice, step...)
		}
	}
	if room := max(1, mostLines-len(advice)); len(lines) > room {
		left := len(lines) - room + 1
		lines = append(lines[:room-1], a.message(fmt.Sprintf("and %s more", words.Count(left, "line")))...)
	}
	for _, line := range append(lines, advice...) {
		fmt.Fprintln(a.stderr, line)
	}
}

// prefix is the start of each message on standard error.
const prefix = "lockbench: "

// message returns the lines of a message, which begins with the prefix. It replaces control characters, because the
// text may quote a server, a document or the name of a file.
func (a *app) message(text string) []string { return a.lines(prefix + text) }

// lines returns a text for standard error as one line. If standard error is a terminal, it returns lines wrapped to the
// terminal's width instead.
func (a *app) lines(text string) []string {
	text = untrusted.Printable(text)
	if wide := terminalWidth(a.stderr.to); wide > 0 {
		return layout.Wrap(text, wide, "  ")
	}
	return []string{text}
}

// say prints a message on standard error.
func (a *app) say(format string, args ...any) {
	fmt.Fprintln(a.stderr, strings.Join(a.message(fmt.Sprintf(format, args...)), "\n"))
}

func (a *app) warn(lines ...string) {
	for _, line := range lines {
		a.say("warning: %s", line)
	}
}

// columns prints rows as an aligned table on standard output.
func (a *app) columns(rows [][]string) error {
	p := layout.Page{Wide: a.width()}
	p.Columns("", rows)
	_, err := a.stdout.Write(p.Bytes())
	return printed(err)
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
	root.SetHelpTemplate(helpTemplate)
	root.SetHelpCommand(help())
	root.SetFlagErrorFunc(misused)
	root.AddCommand(a.run("run"), a.compare(), a.ab(), a.report(), a.selfcheck(), a.doctor(), a.claims(),
		a.advise(), a.limits(), a.observe(), a.record(), a.list(), a.drivers(), a.check(), a.clean(), a.version())
	root.CompletionOptions.DisableNoDescFlag = true
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil { // cobra's shows its help and ends with 0
		completion.Short = "Generate the completion script of a shell"
		completion.RunE = func(*cobra.Command, []string) error {
			return errors.New("SHELL is needed: bash, fish, powershell or zsh")
		}
		completion.Args = func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return fmt.Errorf("unknown shell %q (shells: bash, fish, powershell, zsh)", args[0])
		}
		for _, shell := range completion.Commands() {
			shell.Args = noArguments
		}
	}
	return root
}

// noArguments returns an error if a command that takes no arguments was given any.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no argument: leave out %q", cmd.CommandPath(), args[0])
}

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use:               "version",
		Short:             "Print the version",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine())
			return printed(err)
		},
	}
}

func versionLine() string {
	built := runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH
	if tags := buildTags(); tags != "" {
		built += ", -tags " + tags
	}
	return fmt.Sprintf("lockbench %s (%s)", lockbench.Version(), built)
}

// buildTags returns the build tags of this program, separated by commas.
func buildTags() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "-tags" {
				return setting.Value
			}
		}
	}
	return ""
}

// others matches errors about the parts that cmd/lockbench leaves out under the tag redisonly: stores other than Redis,
// containers and OTLP.
var others = regexp.MustCompile(`(?i)etcd|postgres|zookeeper|\bzk:|rueidis|container|docker client|without OTLP`)

// leftOut returns the advice to build without the tag redisonly. It returns "" unless tags contains redisonly and line,
// one line of an error, may concern a part that the tag leaves out.
func leftOut(tags, line string) string {
	if !slices.Contains(strings.Split(tags, ","), "redisonly") || !others.MatchString(line) {
		return ""
	}
	return "this lockbench was built with -tags redisonly, without etcd, PostgreSQL, ZooKeeper, containers, " +
		"rueidislock and OTLP: make build builds one with them"
}
