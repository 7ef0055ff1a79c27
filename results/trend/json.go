package trend

import (
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes every series with its points and changes.
func WriteJSON(w io.Writer, all []Series) error {
	if all == nil {
		all = []Series{}
	}
	document, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("encode trend: %w", err)
	}
	if _, err := w.Write(append(document, '\n')); err != nil {
		return fmt.Errorf("write trend: %w", err)
	}
	return nil
}
