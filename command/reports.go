package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

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

// pageFlags holds the values of report's flags --output and --chart.
type pageFlags struct {
	outputs *outputs[[]results.File]
	chart   string
}

func (a *app) report() *cobra.Command {
	p := &pageFlags{}
	p.outputs = p.formats()
	cmd := &cobra.Command{
		Use:   "report RUN.json...",
		Short: "Show reports as a page or in a format of run",
		Long: "Show reports written by lockbench -o json=FILE, each a file, a directory or a quoted glob. Without\n" +
			"--output it prints every file, those of a directory by name: the table of a report, and in full what\n" +
			"advise, claims, check, doctor, selfcheck, compare or ab wrote as JSON. The page (html) has findings,\n" +
			"charts and tables, and needs no network; it draws one curve through runs that differ only in the\n" +
			"number of clients. The other formats are those of run. html, svg, table and tables take several reports.",
		Example: "  lockbench -s spin,pubsub -c 10,100,500 -o json=run.json\n" +
			"  lockbench report run.json\n" +
			"  lockbench report run.json -o report.html -o run.csv\n" +
			"  lockbench report run.json -o waits.svg \\\n    --chart 1-wait-c500",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: jsonFiles,
	}
	set := cmd.Flags()
	set.SortFlags = false
	p.outputs.register(set)
	set.StringVar(&p.chart, "chart", "", "`name` of the chart that svg writes, such as 1-throughput")
	offer := cobra.FixedCompletions(p.outputs.names(), cobra.ShellCompDirectiveDefault)
	if err := cmd.RegisterFlagCompletionFunc("output", offer); err != nil {
		panic(err)
	}
	cmd.RunE = func(_ *cobra.Command, patterns []string) error {
		given := a.input(set)
		var missing error
		if len(patterns) == 0 {
			missing = errors.New("give at least one report, such as RUN.json, that lockbench wrote with -o json=RUN.json")
		}
		outputs := p.outputs.all(true)
		clash := check(outputs, allReports(patterns)...)
		if onlyTable(outputs) && p.chart == "" {
			texts, err := readAll(a, patterns, odd, readDocument)
			if err := given.refuse(missing, clash, err); err != nil {
				return err
			}
			return saveAll(a, asTables(outputs), texts, false)
		}
		files, err := a.readFiles(patterns, odd)
		problems := []error{missing, unnamed(outputs), clash, err, p.unfit(outputs, files)}
		if err := given.refuse(problems...); err != nil {
			return err
		}
		outputs = oneFileEach(outputs, render.HgrmNames(files[0].Report), first)
		if err := given.refuse(check(outputs, allReports(patterns)...)); err != nil {
			return err
		}
		return saveAll(a, outputs, files, false)
	}
	return cmd
}

// formats returns the flag --output of report, which accepts html, svg and the formats of run.
func (p *pageFlags) formats() *outputs[[]results.File] {
	ofRun := reportOutputs()
	all := map[string]writer[[]results.File]{
		"html": plain(html.Write),
		"svg":  plain(func(w io.Writer, files []results.File) error { return html.WriteChart(w, files, p.chart) }),
	}
	for name, write := range ofRun.formats {
		all[name] = func(w io.Writer, files []results.File, wide int, color bool) error {
			for i, file := range files {
				if err := named(w, i, len(files), file.Name); err != nil {
					return err
				}
				if err := write(w, file.Report, wide, color); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return &outputs[[]results.File]{usual: ofRun.usual, byEnding: true, formats: all}
}

// ofSeveral lists the formats that can hold several reports.
var ofSeveral = []string{"html", "svg", "table", "tables"}

// unfit returns an error for formats that cannot hold these reports, and for a chart that cannot be drawn.
func (p *pageFlags) unfit(outputs []output[[]results.File], files []results.File) error {
	var problems []error
	drawn := false
	for _, o := range outputs {
		drawn = drawn || o.format == "svg"
		if len(files) > 1 && !slices.Contains(ofSeveral, o.format) {
			problems = append(problems, fmt.Errorf("--output: %s holds one report, not %d: write one file for each report",
				o.format, len(files)))
		}
	}
	switch {
	case p.chart != "" && !drawn:
		problems = append(problems, fmt.Errorf("--chart %s needs an SVG output, such as -o %s.svg", p.chart, p.chart))
	case p.chart == "" && drawn:
		problems = append(problems, errors.New("--output: svg needs the name of a chart: add --chart, such as "+
			"--chart 1-throughput; an unknown name lists all charts"))
	case drawn && len(files) > 0:
		if err := html.WriteChart(io.Discard, files, p.chart); err != nil {
			problems = append(problems, fmt.Errorf("--chart: %w", err))
		}
	}
	return errors.Join(problems...)
}

// first returns the only report, for formats that can hold just one.
func first(files []results.File) *results.Report { return files[0].Report }

// onlyTable reports whether table is the only requested format. Documents other than reports have no other format.
func onlyTable[T any](outputs []output[T]) bool {
	return !slices.ContainsFunc(outputs, func(o output[T]) bool { return o.format != "table" })
}

// asTables returns the table outputs as outputs that accept any kind of document.
func asTables[T any](outputs []output[T]) (all []output[[]readable]) {
	for _, o := range outputs {
		all = append(all, output[[]readable]{o.format, o.given, o.file, writeTexts})
	}
	return all
}

// readable is a JSON document that can be written as a table.
type readable struct {
	name    string
	content []byte
}

// readDocument reads a report or another document, and checks that it can be written as a table.
func readDocument(name string) (readable, error) {
	content, err := untrusted.ReadFile(name)
	if err != nil {
		return readable{}, err
	}
	document := readable{untrusted.Printable(name), untrusted.JSON(content)}
	if err := document.write(io.Discard, withoutTerminal, false); err != nil {
		return readable{}, fmt.Errorf("%s: %w", name, err)
	}
	return document, nil
}

// write writes a report as a table, or any other document in full.
func (d readable) write(w io.Writer, wide int, color bool) error {
	if write := written[schemaOf(d.content)]; write != nil {
		return write(w, d.content, wide, color)
	}
	report, err := results.ReadJSON(bytes.NewReader(d.content))
	if err != nil {
		return err
	}
	return render.WriteTable(w, report, wide, color)
}

// writeTexts writes documents one after another.
func writeTexts(w io.Writer, all []readable, wide int, color bool) error {
	for i, one := range all {
		if err := named(w, i, len(all), one.name); err != nil {
			return err
		}
		if err := one.write(w, wide, color); err != nil {
			return err
		}
	}
	return nil
}

// named writes the name of a document as its heading, with an empty line before and after it. It writes nothing if
// there is only one document.
func named(w io.Writer, index, number int, name string) error {
	var err error
	switch {
	case number > 1 && index > 0:
		_, err = fmt.Fprintf(w, "\n%s\n\n", name)
	case number > 1:
		_, err = fmt.Fprintf(w, "%s\n\n", name)
	}
	return err
}

// written maps the schema of each document other than a report to the function that prints it as text.
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

// as returns a function that decodes a document of type T and passes it to write.
func as[T any](write writer[*T]) func(io.Writer, []byte, int, bool) error {
	return func(w io.Writer, text []byte, wide int, color bool) error {
		var d T
		if err := json.Unmarshal(text, &d); err != nil {
			return fmt.Errorf("not a complete JSON document: %w", err)
		}
		return write(w, &d, wide, color)
	}
}

// schemaOf returns the schema that a JSON document names. It returns "" if the text is not a JSON document with a
// schema.
func schemaOf(text []byte) string {
	var head struct {
		Schema string `json:"schema"`
	}
	_ = json.Unmarshal(text, &head) // on an error Schema stays empty
	return head.Schema
}
