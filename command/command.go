// Package command is lockbench's command line. The author of a lock registers a
// strategy and calls Main:
//
//	func main() {
//		os.Exit(command.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
//	}
package command

import (
	"context"
	"fmt"
	"io"
	"strings"

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
	a := &app{args: append([]string{}, args...), stdin: stdin, stdout: stdout, stderr: &locked{to: stderr}}
	return a.interruptible(ctx, a.execute)
}

// app is one call of Main.
type app struct {
	args   []string
	stdin  io.Reader
	stdout io.Writer
	stderr *locked // signals and work write to it from different goroutines
}

// execute runs the command line and returns its exit code.
func (a *app) execute(ctx context.Context) int {
	root := a.root()
	root.SetArgs(a.args)
	err := root.ExecuteContext(ctx)
	a.complain(err)
	code := exitCode(ctx, err)
	if code == ExitStopped {
		a.say("interrupted before there were any results")
	}
	return code
}

// complain writes an error, with our prefix on each line.
func (a *app) complain(err error) {
	if err == nil {
		return
	}
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			a.say("%s", line)
		}
	}
	a.nextSteps(err)
}

// nextSteps says what to do about servers' errors, each advice once.
func (a *app) nextSteps(err error) {
	said := map[string]bool{}
	for line := range strings.Lines(err.Error()) {
		if next := servers.NextStep(line); next != "" && !strings.Contains(line, next) && !said[next] {
			said[next] = true
			a.say("next: %s", next)
		}
	}
}

// say writes one line to standard error. It may quote a server's error, a document or a file's name.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.stderr, "lockbench: %s\n", untrusted.Printable(fmt.Sprintf(format, args...)))
}

func (a *app) root() *cobra.Command {
	root := a.run("lockbench")
	root.Long = intro
	root.Example = examples
	root.Version = lockbench.Version()
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetVersionTemplate(versionLine() + "\n")
	root.SetUsageTemplate(usage)
	root.SuggestionsMinimumDistance = 2
	root.AddCommand(a.run("run"), a.compare(), a.ab(), a.report(), a.merge(), a.selfcheck(), a.doctor(), a.claims(), a.advise(), a.list(), a.clean(), a.completion(), a.version())
	return root
}
