package compare

import (
	"io"

	"github.com/lockbench/lockbench/internal/jsonio"
)

// WriteJSON writes the comparison as an indented JSON document, as a whole or not
// at all.
func WriteJSON(w io.Writer, c *Comparison) error { return jsonio.Write(w, "comparison", c) }
