// Package words puts figures and names into sentences.
package words

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// plainWord needs no quotes in a shell.
var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// Quoted is a word as a shell reads it.
func Quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Count is a number with its noun: 1 run, 2 runs.
func Count(n int, noun string) string { return fmt.Sprintf("%d %s", n, Noun(n, noun)) }

// Noun is the noun behind a number, in the plural but for 1; its plural ends in s.
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

// Dotted puts a dot between those parts that are not empty.
func Dotted(parts ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return part == "" }), " · ")
}
