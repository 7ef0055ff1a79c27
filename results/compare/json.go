package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes the comparison as an indented JSON document, as a whole or not
// at all.
func WriteJSON(w io.Writer, c *Comparison) error {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(c); err != nil {
		return fmt.Errorf("encode comparison: %w", err)
	}
	if _, err := w.Write(buffer.Bytes()); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}
