// Package suggest guesses which known name was meant by an unknown one.
package suggest

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Name returns the known name with the fewest edits from the given one, capitals aside
// (V. I. Levenshtein, Soviet Physics Doklady 10, 1966). It returns the first of several,
// and "" if more than half of the name must be edited.
func Name(given string, known []string) string {
	best, distance := "", len(given)/2+1
	for _, name := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(given), strings.ToLower(name)); d < distance {
			best, distance = name, d
		}
	}
	return best
}

// Question returns the end of an error about a name: `, did you mean "spin"?`, with the
// nearest name in a format such as %q; "" if no name is near.
func Question(format, given string, known []string) string {
	if name := Name(given, known); name != "" {
		return fmt.Sprintf(", did you mean "+format+"?", name)
	}
	return ""
}
