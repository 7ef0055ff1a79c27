// Package indented writes documents as JSON that people can read too.
package indented

import (
	"encoding/json"
	"fmt"
	"io"
)

// Write writes a document as a whole, or nothing when it cannot be encoded; what
// names it in errors.
func Write(w io.Writer, what string, document any) error {
	encoded, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", what, err)
	}
	if _, err := w.Write(append(encoded, '\n')); err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}
