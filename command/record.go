package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/internal/words"
)

// record holds the flags and arguments of the command record: what to run, how often, and where to write the reports.
type record struct {
	sessions int
	every    time.Duration
	quiet    bool
	folder   string
	builds   []string
	runs     []string // the flags of the runs
}

func (a *app) record() *cobra.Command {
	f := &record{}
	cmd := &cobra.Command{
		Use:   "record [flags] DIR [BUILD]... [-- FLAGS]",
		Short: "Record sessions at intervals, for compare",
		Long: "Run lockbench with FLAGS repeatedly, and write each report into DIR as a session for compare.\n" +
			"Several builds take turns, and each has its own folder in DIR. A report appears there once it is\n" +
			"complete, next to the earlier ones. Ctrl-C ends the current session without a report and keeps the\n" +
			"sessions before it. record stops at the first session that it cannot measure. It keeps a session that\n" +
			"broke a guarantee or cannot be trusted, because compare judges it.",
		Example: "  lockbench record -n 6 --every 10m sessions \\\n    ./before ./after -- -s pubsub -c 200\n" +
			"  lockbench compare sessions/before sessions/after --strict",
		Args: cobra.ArbitraryArgs,
	}
	set := cmd.Flags()
	set.SortFlags = false
	set.IntVarP(&f.sessions, "sessions", "n", 6, "`number` of sessions of each build; an interval needs 6")
	set.DurationVar(&f.every, "every", 0, "`time` from the start of one session to the start of the next (default none)")
	registerQuiet(set, &f.quiet)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		given := a.input(set).variables(set)
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			args, f.runs = args[:dash], args[dash:]
		}
		if len(args) > 0 {
			f.folder, f.builds = args[0], args[1:]
		}
		if err := given.refuse(f.validate()); err != nil {
			return err
		}
		return a.sessions(cmd.Context(), f)
	}
	return cmd
}

func (f *record) validate() error {
	var problems []error
	if f.folder == "" {
		problems = append(problems, errors.New("DIR is needed: the directory for the reports"))
	}
	if f.sessions < 1 {
		problems = append(problems, fmt.Errorf("--sessions must be at least 1, not %d", f.sessions))
	}
	if f.every < 0 {
		problems = append(problems, fmt.Errorf("--every must be at least 0s, not %v", f.every))
	}
	names := map[string]bool{}
	for _, build := range f.builds {
		err := runnable(build)
		name := filepath.Base(build)
		if names[name] {
			err = fmt.Errorf("two builds have the name %s, so their reports would be in one folder: rename one", name)
		}
		names[name] = true
		problems = append(problems, err)
	}
	_, in := ofRuns(f.runs)
	for name := range strings.FieldsSeq("quiet output dry-run " + notAlone) {
		if in.set.Changed(name) {
			problems = append(problems, fmt.Errorf("the arguments after -- must not contain --%s", name))
		}
	}
	return errors.Join(problems...)
}

// sessions records f.sessions sessions of each build. Several builds take turns. Each round begins with a different
// build, so that no build gains from its position.
func (a *app) sessions(ctx context.Context, f *record) error {
	folders := map[string]string{}
	for _, build := range f.builds {
		folders[build] = filepath.Join(f.folder, filepath.Base(build))
	}
	if len(f.builds) == 0 {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		f.builds, folders[self] = []string{self}, f.folder
	}
	for _, folder := range folders {
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return err
		}
	}
	written := 0
	for session := range f.sessions {
		next := time.After(f.every)
		for i := range f.builds {
			build := f.builds[(session+i)%len(f.builds)]
			file, err := f.one(ctx, build, folders[build])
			if ctx.Err() != nil {
				return stoppedAfter(written)
			}
			if err != nil {
				return fmt.Errorf("session %d of %s: %w", session+1, build, err)
			}
			if written++; !f.quiet {
				a.say("[%d/%d] wrote %s", written, f.sessions*len(f.builds), file)
			}
		}
		if session == f.sessions-1 {
			break
		}
		select {
		case <-next:
		case <-ctx.Done():
			return stoppedAfter(written)
		}
	}
	return nil
}

// one records a session and returns the path of its report. The report appears in the folder only once it is complete.
func (f *record) one(ctx context.Context, build, folder string) (string, error) {
	partial := filepath.Join(folder, fmt.Sprintf("%d.partial", os.Getpid()))
	defer os.Remove(partial)
	if _, err := (child{program: build, flags: f.runs, report: partial}).run(ctx); err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		file := filepath.Join(folder, fmt.Sprintf("%03d.json", n))
		if err := os.Link(partial, file); !errors.Is(err, fs.ErrExist) { // unlike Rename, Link never replaces a report
			return file, err
		}
	}
}

// stoppedAfter returns the error of a command that was interrupted after it had written the given number of complete
// reports.
func stoppedAfter(written int) error {
	if written == 0 {
		return &exit{ExitStopped, errors.New("interrupted during the first session")}
	}
	return &exit{ExitInterrupted, fmt.Errorf("interrupted after %s", words.Count(written, "complete report"))}
}
