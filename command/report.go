package command

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/html"
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
		Args:               cobra.ArbitraryArgs,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		ValidArgsFunction:  jsonFiles,
	}
	set := cmd.Flags()
	set.SortFlags = false
	set.VarP(textValue("file", &p.file), "output", "o", "write the page to this file, or to standard output for - (default the table of each report)")
	set.Var(textValue("name", &p.chart), "chart", "write this chart of the page alone, as SVG: report.svg --chart 1-throughput")
	cmd.RunE = func(_ *cobra.Command, patterns []string) error {
		read, err := a.readFiles(patterns, odd)
		if faults := a.problems(source{set: set}, p.validate(patterns, !set.Changed("output")), clashes(reads("RUN.json", patterns...), p.written()), err); faults != nil {
			return faults
		}
		if p.file == "" {
			return a.printTables(read)
		}
		var files []html.File
		for _, f := range read {
			files = append(files, html.File{Name: f.name, Report: f.report})
		}
		return a.savePage(p, files)
	}
	return cmd
}

// validate returns all errors of the flags; tables says that there is to be no page.
func (p *pageFlags) validate(patterns []string, tables bool) error {
	var problems []error
	if !tables || p.chart != "" {
		problems = append(problems, destination(p.file, "report.html"))
	}
	if len(patterns) == 0 {
		problems = append(problems, errors.New("RUN.json is needed: reports written by lockbench -o json=FILE"))
	}
	return errors.Join(problems...)
}

// written returns the page's file.
func (p *pageFlags) written() []file {
	if p.file == "" {
		return nil
	}
	return []file{written(p.file)}
}

// destination returns an error if a command cannot write its one file; - means standard
// output.
func destination(file, example string) error {
	switch file {
	case "":
		return fmt.Errorf("--output is needed: a file such as %s, or - for standard output", example)
	case "-":
		return nil
	}
	if format, rest, named := strings.Cut(file, "="); named && slices.Contains(append(reportFormats(nil).names(), "html"), format) {
		return fmt.Errorf("--output is a file here and takes no format: write %s in place of %s, or ./%s if that is its name", cmp.Or(rest, "-"), file, file)
	}
	if err := writable(file); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return nil
}

// deliver writes content to a file; - means standard output.
func (a *app) deliver(file string, content []byte) error {
	if file == "-" {
		_, err := a.stdout.Write(content)
		return printed(err)
	}
	if err := replace(file, content); err != nil {
		return &exit{ExitFailure, fmt.Errorf("write %s: %w", file, err)}
	}
	return nil
}

// reportFile is a report and the file it was read from.
type reportFile struct {
	name   string
	report *results.Report
}

// jsonFiles lets a shell offer JSON files.
func jsonFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"json"}, cobra.ShellCompDirectiveFilterFileExt
}

// readFiles reads every report that the names and globs stand for, each file once. The
// error names all files that cannot be read.
func (a *app) readFiles(patterns []string, leaveOut bool) ([]reportFile, error) {
	var files []reportFile
	var problems []error
	for _, pattern := range patterns {
		more, err := a.readAll(pattern, leaveOut)
		problems = append(problems, err)
		for _, f := range more {
			if !slices.ContainsFunc(files, func(seen reportFile) bool { return filepath.Clean(seen.name) == filepath.Clean(f.name) }) {
				files = append(files, f)
			}
		}
	}
	return files, errors.Join(problems...)
}

// savePage writes the page, or one of its charts.
func (a *app) savePage(p *pageFlags, files []html.File) error {
	if p.chart == "" && !strings.HasSuffix(p.file, ".svg") {
		var page bytes.Buffer
		if err := html.Write(&page, files); err != nil {
			return &exit{ExitFailure, err}
		}
		return a.deliver(p.file, page.Bytes())
	}
	names, err := html.Charts(files)
	if err != nil {
		return &exit{ExitFailure, err}
	}
	if !slices.Contains(names, p.chart) {
		return fmt.Errorf("--chart: there is no chart %q, but %s", p.chart, strings.Join(names, ", "))
	}
	svg, err := html.Chart(files, p.chart)
	if err != nil {
		return &exit{ExitFailure, err}
	}
	return a.deliver(p.file, svg)
}

// printTables prints the table of each report, under its file's name if there are several.
func (a *app) printTables(reports []reportFile) error {
	var text bytes.Buffer
	for i, f := range reports {
		if len(reports) > 1 {
			fmt.Fprintf(&text, "%s%s\n\n", strings.Repeat("\n", min(i, 1)), f.name)
		}
		if err := render.WriteTable(&text, f.report, colorful(a.stdout)); err != nil {
			return &exit{ExitFailure, fmt.Errorf("%s: %w", f.name, err)}
		}
	}
	_, err := a.stdout.Write(text.Bytes())
	return printed(err)
}
