package command

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/html"
	"github.com/lockbench/lockbench/results/merge"
	"github.com/lockbench/lockbench/results/render"
)

// pageFlags are the flags of report.
type pageFlags struct {
	file  string
	chart string
}

func (a *app) report() *cobra.Command {
	p := &pageFlags{}
	cmd := &cobra.Command{
		Use:   "report RUN.json...",
		Short: "Show reports as a page for a browser, or their tables",
		Long: "Make one page of reports written by lockbench -o json=FILE, each a file, a directory or a quoted\n" +
			"glob: findings in plain words, pictures, tables. It needs no network. Runs of one workload with\n" +
			"several numbers of clients make its herd curve. Without --output it prints the table of each report.",
		Example: "  lockbench -s spin,pubsub,handoff --clients 10,100,500 -o json=run.json\n" +
			"  lockbench report run.json\n" +
			"  lockbench report run.json -o report.html\n" +
			"  lockbench report run.json -o waits.svg --chart 1-wait-c500",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: jsonFiles,
	}
	set := cmd.Flags()
	set.SortFlags = false
	set.StringVarP(&p.file, "output", "o", "", "`file` of the page, or - for standard output (default: print tables)")
	set.StringVar(&p.chart, "chart", "",
		"write only the chart of this `name`, as SVG: -o report.svg --chart 1-throughput")
	cmd.RunE = func(_ *cobra.Command, patterns []string) error {
		var missing, wrong error
		if len(patterns) == 0 {
			missing = errors.New("RUN.json is needed: reports written by lockbench -o json=FILE")
		}
		var page []output[[]byte]
		if set.Changed("output") || p.chart != "" {
			page, wrong = single(p.file, "report.html")
		}
		files, err := a.readFiles(patterns, odd)
		if err := a.input(set).refuse(wrong, missing, check(page, allReports(patterns)...), err); err != nil {
			return err
		}
		if page == nil {
			return a.printTables(files)
		}
		content, err := p.content(files)
		if err != nil {
			return err
		}
		return saveAll(a, page, content, true)
	}
	return cmd
}

// content returns the page, or one of its charts.
func (p *pageFlags) content(files []results.File) ([]byte, error) {
	var content bytes.Buffer
	if p.chart == "" && !strings.HasSuffix(p.file, ".svg") {
		if err := html.Write(&content, files); err != nil {
			return nil, &exit{ExitFailure, err}
		}
		return content.Bytes(), nil
	}
	if err := html.WriteChart(&content, files, p.chart); err != nil {
		return nil, fmt.Errorf("--chart: %w", err)
	}
	return content.Bytes(), nil
}

// printTables prints the table of each report, under its file's name if there are several.
func (a *app) printTables(reports []results.File) error {
	var text bytes.Buffer
	for i, f := range reports {
		if len(reports) > 1 {
			fmt.Fprintf(&text, "%s%s\n\n", strings.Repeat("\n", min(i, 1)), f.Name)
		}
		if err := render.WriteTable(&text, f.Report, a.width(), colorful(a.stdout)); err != nil {
			return &exit{ExitFailure, fmt.Errorf("%s: %w", f.Name, err)}
		}
	}
	_, err := a.stdout.Write(text.Bytes())
	return printed(err)
}

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
		if err := saveAll(a, output, encoded.Bytes(), true); err != nil {
			return err
		}
		return outcome(cmd.Context(), merged, nil)
	}
	return cmd
}

// reportFiles returns the files that a file, a directory or a glob stands for, sorted by
// name.
func reportFiles(pattern string) ([]string, error) {
	stat, err := os.Stat(pattern)
	switch {
	case err == nil && stat.IsDir():
		pattern = filepath.Join(pattern, "*.json")
	case err == nil:
		return []string{pattern}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pattern, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no such report", pattern)
	}
	slices.Sort(files)
	return files, nil
}

// allReports returns the files that several of these stand for; those that are missing are reported
// elsewhere.
func allReports(patterns []string) []string {
	var all []string
	for _, pattern := range patterns {
		files, _ := reportFiles(pattern)
		all = append(all, files...)
	}
	return all
}

// readReport reads a report that lockbench wrote with -o json=FILE.
func readReport(file string) (*results.Report, error) {
	document, err := untrusted.ReadFile(file)
	if err != nil {
		return nil, err
	}
	report, err := results.ReadJSON(bytes.NewReader(document))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return report, nil
}

// What to do about a file in a directory that cannot be read as a report.
const (
	strict = false // return an error: without the file the result would be wrong
	odd    = true  // leave it out with a note, if others can be read
)

// jsonFiles lets a shell offer JSON files.
func jsonFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"json"}, cobra.ShellCompDirectiveFilterFileExt
}

// readFiles reads every report that the names, directories and globs stand for, each file once. The
// error names all files that cannot be read.
func (a *app) readFiles(patterns []string, leaveOut bool) ([]results.File, error) {
	var files []results.File
	var problems []error
	seen := map[string]bool{}
	for _, pattern := range patterns {
		names, err := reportFiles(pattern)
		before, wrong := len(files), []error{err}
		for _, name := range names {
			if seen[filepath.Clean(name)] {
				continue
			}
			seen[filepath.Clean(name)] = true
			report, err := readReport(name)
			if err != nil {
				wrong = append(wrong, err)
				continue
			}
			files = append(files, results.File{Name: untrusted.Printable(name), Report: report})
		}
		err = errors.Join(wrong...)
		stat, missing := os.Stat(pattern)
		if err != nil && missing == nil && stat.IsDir() && leaveOut && len(files) > before {
			for _, one := range flatten(err) {
				a.say("note: left out: %s", one)
			}
			continue
		}
		problems = append(problems, err)
	}
	return files, errors.Join(problems...)
}
