package compare

import (
	"io"

	"github.com/lockbench/lockbench/internal/jsonio"
)

// WriteJSON writes the comparison as an indented JSON document, or nothing if it cannot be
// encoded.
func WriteJSON(w io.Writer, c *Comparison) error { return jsonio.Write(w, "comparison", c) }
