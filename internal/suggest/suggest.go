// Package suggest guesses which name was meant by one that there is not.
package suggest

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Name is the known name that takes the fewest edits to come from the given one,
// capitals aside (V. I. Levenshtein, Soviet Physics Doklady 10, 1966); the first
// of several, and "" where more than half of the name would have to be edited.
func Name(given string, known []string) string {
	best, distance := "", len(given)/2+1
	for _, name := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(given), strings.ToLower(name)); d < distance {
			best, distance = name, d
		}
	}
	return best
}

// Question is put behind an error about a name: `, did you mean "spin"?`, with
// the nearest name in a format such as %q; "" where no name is near.
func Question(format, given string, known []string) string {
	if name := Name(given, known); name != "" {
		return fmt.Sprintf(", did you mean "+format+"?", name)
	}
	return ""
}

// Typo is the nearest known name if it is so near that another can hardly have been
// meant: at most a third of the given one would have to be edited. Else it is "".
func Typo(given string, known []string) string {
	name := Name(given, known)
	if name == "" || 3*levenshtein.ComputeDistance(strings.ToLower(given), strings.ToLower(name)) > len(given) {
		return ""
	}
	return name
}
