// Package document defines the common parts of the documents of all applications, and writes documents in each format.
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

// Head contains the first fields of every document: the program that wrote it, the time, the machine and Redis.
type Head struct {
	Schema      string              `json:"schema"` // with its version
	Tool        results.Tool        `json:"tool"`
	Started     time.Time           `json:"started"`
	Finished    time.Time           `json:"finished"`
	Environment results.Environment `json:"environment"`
	Redis       results.Redis       `json:"redis"`
}

// Begin returns the head of a new document with the current time as its start.
func Begin(schema string) Head {
	return Head{
		Schema: schema, Tool: results.Tool{Name: "lockbench", Version: lockbench.Version()},
		Started: time.Now(),
	}
}

// Setup returns one line with the versions of lockbench, Go and Redis, and the machine.
func (h Head) Setup() string {
	e := h.Environment
	return fmt.Sprintf("%s %s  %s/%s, %d CPUs, Go %s  Redis %s (%s)",
		h.Tool.Name, h.Tool.Version, e.OS, e.Arch, e.CPUs, strings.TrimPrefix(e.Go, "go"), h.Redis.Version,
		h.Redis.Source)
}

// Name returns the name in the document's schema, such as advice for lockbench/advice/1.
func (h Head) Name() string { return path.Base(path.Dir(h.Schema)) }

// Document is a result that can be written in each format, such as an advice or the verdicts on claims.
type Document interface {
	Name() string
	// Lay writes the document as text, for a terminal, HTML or Markdown according to the page.
	Lay(p *layout.Page)
}

// WriteTable writes a document for a terminal. wide is the width of the terminal in columns.
func WriteTable[D Document](w io.Writer, d D, wide int, color bool) error {
	return write(w, d, &layout.Page{Paint: layout.Paint(color), Wide: wide})
}

// WriteMarkdown writes a document in Markdown.
func WriteMarkdown[D Document](w io.Writer, d D) error {
	return write(w, d, &layout.Page{Markdown: true})
}

// WriteHTML writes a document as one HTML page that needs no network and no script.
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

// Figure is a strategy's value of a metric over all rounds.
type Figure struct {
	Metric string          `json:"metric"`
	Unit   results.Unit    `json:"unit"`
	Value  *results.Figure `json:"value"` // nil if not known
}
