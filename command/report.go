package command

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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
		read, err := a.readFiles(patterns, odd)
		if err := a.input(set).refuse(wrong, missing, check(page, allReports(patterns)...), err); err != nil {
			return err
		}
		if page == nil {
			return a.printTables(read)
		}
		var files []html.File
		for _, f := range read {
			files = append(files, html.File{Name: f.name, Report: f.report})
		}
		content, err := p.content(files)
		if err != nil {
			return err
		}
		return saveAll(a, page, content)
	}
	return cmd
}

// content returns the page, or one of its charts.
func (p *pageFlags) content(files []html.File) ([]byte, error) {
	if p.chart == "" && !strings.HasSuffix(p.file, ".svg") {
		var page bytes.Buffer
		if err := html.Write(&page, files); err != nil {
			return nil, &exit{ExitFailure, err}
		}
		return page.Bytes(), nil
	}
	names, err := html.Charts(files)
	if err != nil {
		return nil, &exit{ExitFailure, err}
	}
	if !slices.Contains(names, p.chart) {
		return nil, fmt.Errorf("--chart: there is no chart %q, but %s", p.chart, strings.Join(names, ", "))
	}
	svg, err := html.Chart(files, p.chart)
	if err != nil {
		return nil, &exit{ExitFailure, err}
	}
	return svg, nil
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
