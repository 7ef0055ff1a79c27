// Package words formats names, numbers and documents as text.
package words

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// plainWord matches a word that needs no quotes in a shell.
var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// Quoted returns a word, in quotes if a shell needs them.
func Quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Count returns a number with its noun: 1 run, 2 runs.
func Count(n int, noun string) string { return fmt.Sprintf("%d %s", n, Noun(n, noun)) }

// Noun returns the noun that fits a number: unchanged for 1, otherwise the plural with s.
func Noun(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// And lists names as a sentence does: a, b and c.
func And(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// Dotted joins the parts that are not empty with dots.
func Dotted(parts ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return part == "" }), " · ")
}

// Suggest returns the end of an error about an unknown name: `, did you mean "spin"?`, with the nearest known name in a
// format such as %q. It returns "" if no known name is near.
func Suggest(format, given string, known []string) string {
	if name := nearest(given, known); name != "" {
		return fmt.Sprintf(", did you mean "+format+"?", name)
	}
	return ""
}

// nearest returns the known name with the fewest edits from the given name, ignoring case (V. I. Levenshtein, Soviet
// Physics Doklady 10, 1966). It returns the first of several such names, and "" if more than half of the name would
// have to be edited.
func nearest(given string, known []string) string {
	return within(len(given)/2, given, known)
}

// Typo returns the known name that the given name probably misspells: one edit away, or two from five letters on, as
// when two letters have changed places. Otherwise it returns "".
func Typo(given string, known []string) string { return within(min(2, len(given)*2/5), given, known) }

// Near returns the known name within two edits of the given name, or within one edit if either name has at most three
// letters. Of several nearest names it returns the first one with the most similar length, because letters often change
// places. It returns "" if there is none.
func Near(given string, known []string) string {
	alike := slices.SortedStableFunc(slices.Values(known), func(a, b string) int {
		return cmp.Compare(apart(a, given), apart(b, given))
	})
	if name := within(1, given, alike); name != "" || len(given) <= 3 {
		return name
	}
	return within(2, given, slices.DeleteFunc(alike, func(name string) bool { return len(name) <= 3 }))
}

// apart returns the difference of two lengths.
func apart(a, b string) int { return max(len(a), len(b)) - min(len(a), len(b)) }

// within returns the nearest known name with at most this many edits; "" if there is none.
func within(edits int, given string, known []string) string {
	best, distance := "", edits+1
	for _, name := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(given), strings.ToLower(name)); d < distance {
			best, distance = name, d
		}
	}
	return best
}

// WriteJSON writes a document completely, or nothing if it cannot be encoded. Errors call the document what. It indents
// by two spaces. It does not escape <, > and &, because the document is not read as HTML.
func WriteJSON(w io.Writer, what string, document any) error {
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return fmt.Errorf("encode %s: %w", what, err)
	}
	return Write(w, what, encoded.Bytes())
}

// Write writes a text with a single call. Errors call the text what.
func Write(w io.Writer, what string, text []byte) error {
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}
