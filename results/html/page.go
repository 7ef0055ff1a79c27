// Package html writes one or more reports as a page for a browser, with findings in plain words, tables, charts, and
// the commands that repeat the measurements. The page fetches nothing from the network. If scripts are disabled, the
// page is complete, but tables cannot be sorted and strategies cannot be hidden.
package html

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/findings"
	"github.com/lockbench/lockbench/workloads"
)

var (
	//go:embed page.html.tmpl
	pageSource string
	//go:embed chart.svg.tmpl
	chartSource string
	//go:embed tones.css
	tonesSource string
	//go:embed style.css
	styleSource string
	//go:embed chart.css
	chartStyle string

	//go:embed live.html.tmpl
	liveSource string

	// Script is the JavaScript of every page. A page allows it by passing it to Policy.
	//go:embed page.js
	Script string

	// templates parses the templates when the first page is written, because most commands write none.
	templates = sync.OnceValue(func() *template.Template {
		all := template.Must(template.New("page").Funcs(template.FuncMap{
			"script": func() template.JS { return template.JS(Script) }, // embedded, so it is safe
			"policy": func() string { return Policy(Script) },
		}).Parse(pageSource))
		template.Must(all.New("chart").Parse(chartSource))
		return template.Must(all.New("live").Parse(liveSource))
	})
)

// Policy returns a Content-Security-Policy that lets a page run only these scripts and fetch nothing.
func Policy(scripts ...string) string {
	hashes := ""
	for _, script := range scripts {
		sum := sha256.Sum256([]byte(script))
		hashes += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; script-src" + hashes +
		"; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
}

type pageData struct {
	Title    string
	Style    template.CSS
	Results  []sorted // the best lock, and findings that cast doubt on the figures
	Findings []sorted
	Judged   []judged
	Sections []family
	Files    []source
}

// judged is the result of a threshold, as the page shows it.
type judged struct {
	Passed bool
	Text   string
}

// sorted holds the texts of all findings of one sort.
type sorted struct {
	Sort  findings.Sort
	Texts []string
}

// bySort groups findings by sort. The groups in first are those about the best lock, untrusted figures, unsafe locks
// and crossed thresholds. rest holds all other groups.
func bySort(list []findings.Finding) (first, rest []sorted) {
	texts := map[findings.Sort][]string{}
	for _, f := range list {
		texts[f.Sort] = append(texts[f.Sort], f.Text)
	}
	foremost := []findings.Sort{findings.Best, findings.NotTrusted, findings.Unsafe, findings.Crossed}
	for _, sort := range append(foremost, findings.Sorts()...) {
		switch {
		case texts[sort] == nil:
			continue
		case slices.Contains(foremost, sort):
			first = append(first, sorted{sort, texts[sort]})
		default:
			rest = append(rest, sorted{sort, texts[sort]})
		}
		delete(texts, sort)
	}
	return first, rest
}

// table is a table of the page with a row for each strategy. The title is "" if the table belongs to a section.
type table struct {
	Title string
	Head  []string
	Rows  [][]string
}

// source describes a report file: the conditions of its measurement, warnings, and the command that repeats the
// measurement.
type source struct {
	Name      string
	Extras    []table // of bursts, of faults and of the audit
	Lines     [][2]string
	Warnings  []string
	Reproduce string
}

// Write writes one page about all these reports.
func Write(w io.Writer, files []results.File) error {
	all := families(files)
	page := pageData{
		Title: "lockbench report", Style: template.CSS(tonesSource + styleSource + chartStyle), // embedded, so it is safe
		Sections: all,
	}
	page.Results, page.Findings = bySort(found(all, files))
	for _, f := range files {
		for _, j := range f.Thresholds {
			text := j.String()
			if len(files) > 1 {
				text = f.Name + ": " + text
			}
			page.Judged = append(page.Judged, judged{j.Passed, text})
		}
		page.Files = append(page.Files, sourceOf(f))
	}
	return write(w, "the page", "page", page)
}

// write executes a template and writes its output. If the template fails, it writes nothing.
func write(w io.Writer, what, name string, data any) error {
	var encoded bytes.Buffer
	if err := templates().ExecuteTemplate(&encoded, name, data); err != nil {
		return fmt.Errorf("make %s: %w", what, err)
	}
	return words.Write(w, what, encoded.Bytes())
}

// WriteDocument writes a page with the given HTML as its content, instead of a report.
func WriteDocument(w io.Writer, title string, of *layout.Page) error {
	var body bytes.Buffer
	if err := of.Save(&body, title); err != nil {
		return err
	}
	return write(w, "the page", "document", struct {
		Title string
		Style template.CSS
		Body  template.HTML
	}{
		title, template.CSS(tonesSource + styleSource + chartStyle),
		template.HTML(body.String()), // package layout escapes all texts
	})
}

// WriteChart writes the chart of this name as an SVG file with a title and a legend. Its error for an unknown name
// lists all charts.
func WriteChart(w io.Writer, files []results.File, name string) error {
	var names []string
	for _, c := range charts(files) {
		if c.name == name {
			return write(w, name, "chart", c.file())
		}
		names = append(names, c.name)
	}
	return fmt.Errorf("unknown chart %q (charts: %s)", name, strings.Join(names, ", "))
}

// found returns the findings about all sections and files, the worst first. It merges findings about the same
// strategies that differ only in their figures.
func found(all []family, files []results.File) []findings.Finding {
	var list []findings.Finding
	var from []string
	add := func(where string, more []findings.Finding) {
		for _, f := range more {
			if f.Sort != "" {
				list, from = append(list, f), append(from, where)
			}
		}
	}
	for _, f := range all {
		var summaries []results.Summary
		for _, a := range f.arenas {
			for _, c := range a.cells {
				summaries = append(summaries, c.Summary)
			}
		}
		add(f.number, findings.Of(summaries))
	}
	for _, file := range files {
		where := ""
		if len(files) > 1 {
			where = file.Name + ": "
		}
		add(where, findings.OfReport(file.Report))
	}
	joined, members := findings.Alike(list)
	for i, f := range joined {
		text := ""
		for _, member := range members[i] {
			text += from[member]
		}
		joined[i] = findings.Finding{Kind: f.Kind, Remark: results.PlainText(text + f.String() + ".")}
	}
	slices.SortStableFunc(joined, func(a, b findings.Finding) int {
		return cmp.Compare(slices.Index(findings.Sorts(), a.Sort), slices.Index(findings.Sorts(), b.Sort))
	})
	return joined
}

func sourceOf(f results.File) source {
	s := source{Name: f.Name, Reproduce: reproduce(f), Warnings: f.Warnings.Texts(), Extras: extras(f)}
	s.Lines = append(s.Lines, [2]string{"build", strings.TrimSpace(f.Tool.Name + " " + f.Tool.Build())})
	if !f.Started.IsZero() {
		s.Lines = append(s.Lines, [2]string{"measured", f.Started.UTC().Format("2006-01-02 15:04 MST")})
	}
	s.Lines = append(append(s.Lines, f.Conditions()...), [2]string{"why this Redis", f.Redis.Why})
	return s
}

// extras returns those tables of mixed strategies, bursts, faults and the audit for which the report has figures.
func extras(f results.File) (all []table) {
	tables := append([]results.Table{
		results.TableOf(results.MixedGroup, f.Report), results.TableOf(results.HerdGroup, f.Report),
	}, f.FaultTables()...)
	for _, t := range append(tables, results.TableOf(results.SafetyGroup, f.Report)) {
		if len(t.Columns) > 0 {
			title := strings.ToUpper(t.Title[:1]) + strings.ToLower(t.Title[1:])
			all = append(all, tableOf(title, t.Columns, t.Rows))
		}
	}
	return all
}

// tableOf returns a table with one row per summary, and the strategy's name in the first column.
func tableOf(title string, columns []results.Column, all []results.Summary) table {
	t := table{Title: title, Head: []string{"strategy"}}
	for _, c := range columns {
		t.Head = append(t.Head, c.Flat())
	}
	for _, s := range all {
		row := []string{s.Title()}
		for _, c := range columns {
			row = append(row, c.Text(s))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// reproduce returns the shell command that repeats the measurement. For a merged report, the command measures the whole
// workload with a single generator.
func reproduce(f results.File) string {
	var names []string
	for _, s := range f.Strategies {
		names = append(names, s.Name)
	}
	line := []string{"lockbench", "--strategy", strings.Join(names, ",")}
	line = append(line, workloads.Arguments(f.Planned())...)
	if f.Rounds > 1 {
		line = append(line, "--runs", strconv.Itoa(f.Rounds))
	}
	line = append(line, where(f)...)
	if f.Baselines == nil && len(f.Generators) == 0 {
		line = append(line, "--no-baselines")
	}
	line = append(line, "-o", "json=run.json")
	for i, word := range line {
		line[i] = words.Quoted(word)
	}
	return strings.Join(line, " ")
}

// where returns the flags that select the Redis servers, including the topology and the image.
func where(f results.File) []string {
	var words []string
	switch r := f.Redis; r.Source {
	case "container", "process":
		words = append(words, "--redis", r.Source)
	case "address":
		scheme := "redis://"
		if r.TLS {
			scheme = "rediss://"
		}
		nodes := slices.Clone(r.Nodes)
		if len(nodes) == 0 {
			nodes = []string{r.Address}
		}
		for i, node := range nodes {
			if !strings.HasPrefix(node, "/") && !strings.HasPrefix(node, "unix:") {
				nodes[i] = scheme + node
			}
		}
		words = append(words, "--redis", strings.Join(nodes, ","))
		if slices.ContainsFunc(f.Workload.Faults,
			func(fault workloads.Fault) bool { return fault.Kind().Place == workloads.OnServers }) {
			words = append(words, "--allow-faults-on-my-server")
		}
	}
	if t := f.Redis.Topology; t != "" && t != "single" && f.Redis.Source != "address" {
		words = append(words, "--topology", t)
	}
	// An image that lockbench built on this machine is not available elsewhere, so the command omits it.
	if image := f.Redis.Image; image != "" && !strings.HasPrefix(image, "lockbench-redis:") {
		words = append(words, "--image", image)
	}
	return words
}
