package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/internal/apps/advise"
	conformance "github.com/lockbench/lockbench/internal/apps/check"
	"github.com/lockbench/lockbench/internal/apps/claims"
	"github.com/lockbench/lockbench/internal/apps/doctor"
	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/apps/limits"
	"github.com/lockbench/lockbench/internal/apps/observe"
	"github.com/lockbench/lockbench/internal/apps/selfcheck"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/compare"
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
		Short: "Show reports as a page or as tables",
		Long: "Make one page of reports written by lockbench -o json=FILE, each a file, a directory or a quoted\n" +
			"glob: findings in plain words, pictures, tables. It needs no network. Runs of one workload with\n" +
			"several numbers of clients make its herd curve. Without --output it prints every file, in the order\n" +
			"given and those of a directory by name: of a report its table, and in full what advise, claims,\n" +
			"check, doctor, selfcheck, compare or ab wrote as JSON.",
		Example: "  lockbench -s spin,pubsub -c 10,100,500 -o json=run.json\n" +
			"  lockbench report run.json\n" +
			"  lockbench report run.json -o report.html\n" +
			"  lockbench report run.json -o waits.svg \\\n    --chart 1-wait-c500",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: jsonFiles,
	}
	set := cmd.Flags()
	set.SortFlags = false
	set.StringVarP(&p.file, "output", "o", "", "`file` of the page, or - for standard output (default: print tables)")
	set.StringVar(&p.chart, "chart", "",
		"write only the chart of this `name`, as SVG: -o report.svg --chart 1-throughput")
	cmd.RunE = func(_ *cobra.Command, patterns []string) error {
		var missing error
		if len(patterns) == 0 {
			missing = errors.New("RUN.json is needed: reports written by lockbench -o json=FILE")
		}
		if !set.Changed("output") && p.chart == "" {
			texts, err := readAll(a, patterns, odd, a.readable)
			if err := a.input(set).refuse(missing, err); err != nil {
				return err
			}
			return a.printTexts(texts)
		}
		page, wrong := single(p.file, "report.html")
		files, err := a.readFiles(patterns, odd)
		if err := a.input(set).refuse(wrong, missing, check(page, allReports(patterns)...), err); err != nil {
			return err
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

// readable is a file as people read it.
type readable struct {
	name    string
	content []byte
}

// readable returns the table of a report, or another document in full.
func (a *app) readable(name string) (readable, error) {
	content, err := untrusted.ReadFile(name)
	if err != nil {
		return readable{}, err
	}
	content = untrusted.JSON(content)
	var shown bytes.Buffer
	if write := written[schemaOf(content)]; write != nil {
		err = write(&shown, content, a.width(), colorful(a.stdout))
	} else {
		var report *results.Report
		if report, err = results.ReadJSON(bytes.NewReader(content)); err == nil {
			err = render.WriteTable(&shown, report, a.width(), colorful(a.stdout))
		}
	}
	if err != nil {
		return readable{}, fmt.Errorf("%s: %w", name, err)
	}
	return readable{untrusted.Printable(name), shown.Bytes()}, nil
}

// printTexts prints them, each under its file's name if there are several.
func (a *app) printTexts(all []readable) error {
	var page bytes.Buffer
	for i, one := range all {
		if i > 0 {
			page.WriteByte('\n')
		}
		if len(all) > 1 {
			fmt.Fprintf(&page, "%s\n\n", one.name)
		}
		page.Write(one.content)
	}
	_, err := a.stdout.Write(page.Bytes())
	return printed(err)
}

// written has for each schema of a document that is no report what writes it for people.
var written = map[string]func(w io.Writer, text []byte, wide int, color bool) error{
	"lockbench/advice/1":      as(document.WriteTable[*advise.Document]),
	"lockbench/check/1":       as(document.WriteTable[*conformance.Document]),
	"lockbench/claims/1":      as(document.WriteTable[*claims.Document]),
	"lockbench/doctor/1":      as(document.WriteTable[*doctor.Document]),
	"lockbench/limits/1":      as(document.WriteTable[*limits.Document]),
	"lockbench/observation/1": as(document.WriteTable[*observe.Document]),
	"lockbench/selfcheck/1":   as(document.WriteTable[*selfcheck.Document]),
	compare.Schema:            as(compare.WriteText),
}

// as reads a document and writes it.
func as[T any](write writer[*T]) func(io.Writer, []byte, int, bool) error {
	return func(w io.Writer, text []byte, wide int, color bool) error {
		var d T
		if err := json.Unmarshal(text, &d); err != nil {
			return fmt.Errorf("not a whole document: %w", err)
		}
		return write(w, &d, wide, color)
	}
}

// schemaOf returns the schema of a document; "" if it is none.
func schemaOf(text []byte) string {
	var head struct {
		Schema string `json:"schema"`
	}
	_ = json.Unmarshal(text, &head) // what is no document has none
	return head.Schema
}
