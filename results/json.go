package results

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/internal/words"
)

// WriteJSON writes the report as an indented JSON document. If the report cannot be encoded,
// it writes nothing.
func WriteJSON(w io.Writer, r *Report) error {
	document := *r
	if document.Schema == "" {
		document.Schema = Schema
	}
	// A list without entries is written as [], not null, so that programs need not handle null.
	if document.Strategies == nil {
		document.Strategies = []Strategy{}
	}
	if document.Runs == nil {
		document.Runs = []Run{}
	}
	return words.WriteJSON(w, "report", document)
}

// ReadJSON reads a report that WriteJSON wrote. It rejects a document that is truncated, is not a lockbench report or
// has a different schema version. It also rejects a histogram that is damaged or does not have lockbench's layout. It
// makes all texts printable. It ignores unknown fields, because fields may be added within a schema version.
func ReadJSON(r io.Reader) (*Report, error) {
	document, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	document = untrusted.JSON(document)
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(document, &head); err != nil {
		return nil, fmt.Errorf("not a complete lockbench report: %w", err)
	}
	if head.Schema != Schema {
		return nil, fmt.Errorf("not a report that this version of lockbench reads: its schema is %q, not %q", head.Schema,
			Schema)
	}
	var report Report
	if err := json.Unmarshal(document, &report); err != nil {
		return nil, fmt.Errorf("not a complete lockbench report: %w", err)
	}
	return &report, nil
}
