// Package document defines what the documents of all applications have in common, and writes them.
package document

import (
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/html"
)

// Head begins a document: which program made it, when, and on what.
type Head struct {
	Schema      string              `json:"schema"` // with its version
	Tool        results.Tool        `json:"tool"`
	Started     time.Time           `json:"started"`
	Finished    time.Time           `json:"finished"`
	Environment results.Environment `json:"environment"`
	Redis       results.Redis       `json:"redis"`
}

// Begin returns the head of a document that this program begins now.
func Begin(schema string) Head {
	return Head{
		Schema: schema, Tool: results.Tool{Name: "lockbench", Version: lockbench.Version()},
		Started: time.Now(),
	}
}

// Setup says in one line what was used for the measurement.
func (h Head) Setup() string {
	e := h.Environment
	return fmt.Sprintf("%s %s  %s/%s, %d CPUs, Go %s  Redis %s (%s)",
		h.Tool.Name, h.Tool.Version, e.OS, e.Arch, e.CPUs, strings.TrimPrefix(e.Go, "go"), h.Redis.Version,
		h.Redis.Source)
}

// Name returns the document's name: that of its schema.
func (h Head) Name() string { return path.Base(path.Dir(h.Schema)) }

// Document is the result of an application.
type Document interface {
	Name() string
	// Lay writes the document for people: on a page for a terminal or, if it has that form, in Markdown.
	Lay(p *layout.Page)
}

// WriteTable writes a document for a terminal of this width.
func WriteTable[D Document](w io.Writer, d D, wide int, color bool) error {
	return write(w, d, &layout.Page{Paint: layout.Paint(color), Wide: wide})
}

// WriteMarkdown writes a document as a page.
func WriteMarkdown[D Document](w io.Writer, d D) error {
	return write(w, d, &layout.Page{Markdown: true})
}

// WriteHTML writes a document as a page for a browser, which needs no network and no script.
func WriteHTML[D Document](w io.Writer, d D) error {
	p := &layout.Page{HTML: true}
	d.Lay(p)
	return html.WriteDocument(w, "lockbench "+d.Name(), p)
}

func write(w io.Writer, d Document, p *layout.Page) error {
	d.Lay(p)
	return p.Save(w, d.Name())
}

// WriteJSON writes a document as indented JSON.
func WriteJSON[D Document](w io.Writer, d D) error { return words.WriteJSON(w, d.Name(), d) }

// Figure is a metric of a strategy over all rounds.
type Figure struct {
	Metric string          `json:"metric"`
	Unit   results.Unit    `json:"unit"`
	Value  *results.Figure `json:"value"` // nil if not known
}
