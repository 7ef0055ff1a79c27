package command

import (
	"bytes"
	"errors"
	"fmt"
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
		return saveAll(a, page, content)
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
		if err := render.WriteTable(&text, f.Report, colorful(a.stdout)); err != nil {
			return &exit{ExitFailure, fmt.Errorf("%s: %w", f.Name, err)}
		}
	}
	_, err := a.stdout.Write(text.Bytes())
	return printed(err)
}
