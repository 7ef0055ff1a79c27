package findings

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// inText matches the figures in a text, and ranges of figures.
var inText = regexp.MustCompile(`\d+(\.\d+)?(–\d+(\.\d+)?)?`)

// group is a set of texts that differ only in their figures.
type group struct {
	text    string // the first one, with each figure replaced by the range over all of them
	members []int
}

// alike groups the texts that differ only in their figures.
func alike(texts []string) []group {
	var groups []group
	known := map[string]int{}
	for i, text := range texts {
		kind := inText.ReplaceAllString(text, "#")
		at, before := known[kind]
		if !before {
			at = len(groups)
			known[kind] = at
			groups = append(groups, group{})
		}
		groups[at].members = append(groups[at].members, i)
	}
	for i := range groups {
		groups[i].text = groups[i].spanned(texts)
	}
	return groups
}

func (g group) spanned(texts []string) string {
	at := -1
	return inText.ReplaceAllStringFunc(texts[g.members[0]], func(string) string {
		at++
		var figures []string
		for _, i := range g.members {
			low, high, span := strings.Cut(inText.FindAllString(texts[i], -1)[at], "–")
			if figures = append(figures, low); span {
				figures = append(figures, high)
			}
		}
		slices.SortFunc(figures, func(a, b string) int { return cmp.Compare(value(a), value(b)) })
		low, high := figures[0], figures[len(figures)-1]
		if low == high {
			return low
		}
		return low + "–" + high
	})
}

func value(figure string) float64 {
	x, _ := strconv.ParseFloat(figure, 64) // the pattern matches only numbers
	return x
}

// once returns each text once; texts that differ only in figures count as one.
func once(texts []string) []string {
	var all []string
	for _, g := range alike(texts) {
		all = append(all, g.text)
	}
	return all
}
