// Package html shows reports as one page for a browser: findings in plain words, figures as
// pictures, and the commands to repeat the measurement. The page needs no network and no
// script.
package html

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

var (
	//go:embed page.html.tmpl
	pageSource string
	//go:embed style.css
	styleSource string

	pageTemplate = template.Must(template.New("page").Parse(pageSource))
)

// page is the data of the template.
type page struct {
	Title    string
	Style    template.CSS
	Findings []finding
	Sections []section
	Safety   table
	Files    []source
}

// section is the part of the page about a family.
type section struct {
	Title, Note string
	Legend      []legend
	Overview    []picture
	Arenas      []details
}

// details is the part of the page about an arena.
type details struct {
	Title    string
	Open     bool
	Table    table
	Pictures []picture
}

type picture struct {
	Title, Note string
	SVG         template.HTML
}

type legend struct {
	Swatch template.HTML
	Name   string
	About  string
}

type table struct {
	Head []string
	Rows [][]string
}

// extra is a table that only some workloads have.
type extra struct {
	Title string
	Table table
}

// source is a file, and how it was measured.
type source struct {
	Name      string
	Extras    []extra
	Lines     [][2]string
	Warnings  []string
	Reproduce string
}

// Write writes the page of these reports.
func Write(w io.Writer, files []File) error {
	all := families(files)
	page := page{
		Title: "lockbench report", Style: template.CSS(tonesSource + styleSource + chartStyle), // our own
		Findings: found(all, files), Safety: safetyTable(all),
	}
	for i, f := range all {
		s, err := f.section(i == 0 || len(all) <= 3)
		if err != nil {
			return err
		}
		if len(all) > 1 {
			s.Title = numbered(i, s.Title)
		}
		page.Sections = append(page.Sections, s)
	}
	for _, f := range files {
		page.Files = append(page.Files, sourceOf(f))
	}
	var encoded bytes.Buffer
	if err := pageTemplate.Execute(&encoded, page); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return words.Write(w, "the page", encoded.Bytes())
}

// numbered puts the section's number before a text.
func numbered(i int, text string) string { return fmt.Sprintf("[%d] %s", i+1, text) }

func (f family) section(open bool) (section, error) {
	s := section{Title: f.title()}
	all := f
	f = f.drawn()
	var err error
	if s.Overview, err = pictures(f.overview()); err != nil {
		return s, err
	}
	if s.Legend, err = f.legend(); err != nil {
		return s, err
	}
	for i, a := range slices.Backward(f.arenas) {
		d := details{
			Title: fmt.Sprintf("%d clients", a.workload.Clients), Open: open && i == len(f.arenas)-1,
			Table: all.arenas[i].table(),
		}
		charts, err := a.details()
		if err != nil {
			return s, err
		}
		if d.Pictures, err = pictures(charts); err != nil {
			return s, err
		}
		s.Arenas = append(s.Arenas, d)
	}
	if rounds := len(f.top().cells[0].Used); rounds > 1 {
		s.Note = "Medians of the valid runs; whiskers are the smallest and the largest. " +
			"Percentiles are of all valid runs together, shares and timelines of the run with the median throughput."
	}
	left := slices.DeleteFunc(strategyNames([]family{all}),
		func(name string) bool { return slices.Contains(strategyNames([]family{f}), name) })
	if len(left) > 0 {
		s.Note = strings.TrimSpace(s.Note + fmt.Sprintf(" Not a lock, far beyond them and in the tables only: %s.",
			words.And(left)))
	}
	return s, nil
}

func pictures(charts []chart) ([]picture, error) {
	var all []picture
	for _, f := range charts {
		svg, err := f.svg()
		if err != nil {
			return nil, err
		}
		all = append(all, picture{f.title, f.note, svg})
	}
	return all, nil
}

// legend returns an entry for each strategy of the family.
func (f family) legend() ([]legend, error) {
	var all []legend
	for _, a := range f.arenas {
		for _, c := range a.cells {
			if slices.ContainsFunc(all, func(l legend) bool { return l.Name == c.Name }) {
				continue
			}
			s, err := c.swatch()
			if err != nil {
				return nil, err
			}
			all = append(all, legend{s, c.Name, c.Summary.Strategy.Summary})
		}
	}
	return all, nil
}

func sourceOf(f File) source {
	s := source{Name: f.Name, Reproduce: reproduce(f), Warnings: f.Warnings}
	for _, t := range f.Extras() {
		title := strings.ToUpper(t.Title[:1]) + strings.ToLower(t.Title[1:])
		s.Extras = append(s.Extras, extra{title, tableOf(t.Columns, f.Summaries())})
	}
	build := strings.TrimSpace(f.Tool.Name + " " + f.Tool.Version)
	if c := f.Tool.Commit; c != "" && !strings.Contains(build, c[:min(len(c), 7)]) {
		build += " " + c[:min(len(c), 12)]
	}
	s.Lines = append(s.Lines, [2]string{"build", build})
	if !f.Started.IsZero() {
		s.Lines = append(s.Lines, [2]string{"measured", f.Started.UTC().Format("2006-01-02 15:04 MST")})
	}
	s.Lines = append(s.Lines, f.Conditions()...)
	if r := f.Redis.Why; r != "" {
		s.Lines = append(s.Lines, [2]string{"why this Redis", r})
	}
	return s
}

// tableOf returns a table with one row per strategy.
func tableOf(columns []results.Shown, all []results.Summary) table {
	t := table{Head: []string{"strategy"}}
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

// table returns the table of an arena.
func (a arena) table() table {
	var all []results.Summary
	for _, c := range a.cells {
		c.Point = "" // the same for all
		all = append(all, c.Summary)
	}
	return tableOf(results.Columns(results.PageGroup, nil), all)
}

// safetyTable sums the audits of all runs.
func safetyTable(all []family) table {
	var sums []results.Summary
	for _, f := range all {
		for _, a := range f.arenas {
			for _, c := range a.cells {
				at := slices.IndexFunc(sums, func(s results.Summary) bool { return s.Name == c.Name })
				if at < 0 {
					at = len(sums)
					sums = append(sums, results.Summary{Strategy: c.Summary.Strategy})
				}
				sums[at].Runs = append(sums[at].Runs, c.Runs...)
			}
		}
	}
	columns := []results.Shown{
		{Column: results.Column{Heading: "claims", Cell: results.Summary.Verdict}},
		{Column: results.Column{
			Heading: "runs",
			Cell:    func(s results.Summary) string { return fmt.Sprint(len(s.Runs)) },
		}},
	}
	return tableOf(append(columns, results.SafetyColumns()...), sums)
}
