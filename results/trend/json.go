package trend

import (
	"io"

	"github.com/lockbench/lockbench/internal/jsonio"
)

// WriteJSON writes every series with its points and changes.
func WriteJSON(w io.Writer, all []Series) error {
	if all == nil {
		all = []Series{}
	}
	return jsonio.Write(w, "trend", all)
}
