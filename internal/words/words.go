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

// Quoted returns a word as a shell needs it: unchanged, or in quotes if it contains special characters.
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

// Dotted joins the parts with " · ". It leaves out empty parts.
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
// Physics Doklady 10, 1966). Of several such names it returns the first. It returns "" if no name is within half as
// many edits as the given name has letters.
func nearest(given string, known []string) string {
	return within(len(given)/2, given, known)
}

// Typo returns the nearest known name if the given name is probably a misspelling of it, else "". The limit is one edit
// for names of three or four letters, and two edits for longer names, because two swapped letters count as two edits.
// For a shorter name, Typo returns "".
func Typo(given string, known []string) string { return within(min(2, len(given)*2/5), given, known) }

// Near returns the known name within two edits of the given name, or within one edit if either name has at most three
// letters. Of several nearest names it returns the one whose length is most similar, because swapped letters do not
// change the length. It returns "" if no name is near enough.
func Near(given string, known []string) string {
	alike := slices.SortedStableFunc(slices.Values(known), func(a, b string) int {
		return cmp.Compare(apart(a, given), apart(b, given))
	})
	if name := within(1, given, alike); name != "" || len(given) <= 3 {
		return name
	}
	return within(2, given, slices.DeleteFunc(alike, func(name string) bool { return len(name) <= 3 }))
}

// apart returns the difference, in bytes, between the lengths of two names.
func apart(a, b string) int { return max(len(a), len(b)) - min(len(a), len(b)) }

// within returns the nearest known name that is within the given number of edits, or "" if there is none.
func within(edits int, given string, known []string) string {
	best, distance := "", edits+1
	for _, name := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(given), strings.ToLower(name)); d < distance {
			best, distance = name, d
		}
	}
	return best
}

// WriteJSON writes a document completely, or nothing if it cannot be encoded. The parameter what names the document in
// errors. The JSON is indented by two spaces. The characters <, > and & are not escaped, because the document is not
// read as HTML.
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

// Write writes a text with a single call to w.Write. The parameter what names the text in errors.
func Write(w io.Writer, what string, text []byte) error {
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}
