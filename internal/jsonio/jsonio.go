// Package jsonio writes documents: as JSON that people can read too, or as text.
package jsonio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Write writes a document completely, or nothing if it cannot be encoded; what names it
// in errors. It indents by two spaces and does not escape <, > and &: the document is
// not read as HTML.
func Write(w io.Writer, what string, document any) error {
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return fmt.Errorf("encode %s: %w", what, err)
	}
	return WriteText(w, what, encoded.Bytes())
}

// WriteText writes a text that is complete already; what names it in errors.
func WriteText(w io.Writer, what string, text []byte) error {
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}
