package results

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockbench/lockbench/workloads"
)

// A Phrase is a text that records which of its parts are figures. So texts that differ only in their figures can be
// recognised and merged without parsing.

// Quantity is a part of a text: a figure with its number, or words without one.
type Quantity struct {
	Value *float64 `json:"value,omitempty"` // absent for words; ns for durations, percent for shares
	Text  string   `json:"text"`            // as the text has it, with its unit
}

// Measured returns a figure, formatted by a verb of package fmt for float64.
func Measured(x float64, format string) Quantity { return Quantity{&x, fmt.Sprintf(format, x)} }

// Written returns the figure x with a text that the caller has formatted.
func Written(x float64, text string) Quantity { return Quantity{&x, text} }

// quantity converts a part of a remark: a number, a duration, or any value that fmt can print.
func quantity(x any) Quantity {
	switch x := x.(type) {
	case Quantity:
		return x
	case int:
		return Measured(float64(x), "%.0f")
	case int64:
		return Measured(float64(x), "%.0f")
	case time.Duration: // rounded: a reader needs no more digits
		if x > 10*time.Millisecond {
			return Written(float64(x), x.Round(time.Millisecond).String())
		}
		return Written(float64(x), x.String())
	case workloads.Duration:
		return Written(float64(x), x.String())
	case workloads.Rate:
		return Written(float64(x), x.String())
	}
	return Quantity{Text: fmt.Sprint(x)}
}

// Phrase is a text that is divided into words and figures.
type Phrase []part

// part is a piece of a phrase: words, a figure, or the range from the figure low to the figure Quantity.
type part struct {
	Quantity
	low *Quantity // nil for a single figure
}

// Phrasef returns a phrase in which each "%s" of the text is replaced by the next part. If a part is itself a Phrase,
// its figures remain figures.
func Phrasef(text string, parts ...any) Phrase {
	var p Phrase
	words := strings.Split(text, "%s")
	for i, word := range words {
		p = p.with(Quantity{Text: word})
		if i == len(words)-1 || i >= len(parts) {
			continue
		}
		if inner, ok := parts[i].(Phrase); ok {
			p = append(p, inner...)
		} else {
			p = p.with(quantity(parts[i]))
		}
	}
	return p
}

func (p Phrase) with(q Quantity) Phrase { return append(p, part{Quantity: q}) }

// String returns the phrase as plain text.
func (p Phrase) String() string {
	var b strings.Builder
	for _, q := range p {
		b.WriteString(q.String())
	}
	return b.String()
}

// Kind returns a key that is equal for phrases that differ only in their figures.
func (p Phrase) Kind() string {
	var b strings.Builder
	for _, q := range p {
		if q.Value == nil {
			b.WriteString(q.Text)
		} else {
			b.WriteByte(0)
		}
	}
	return b.String()
}

// JoinPhrases concatenates phrases, separated by a text such as ", ".
func JoinPhrases(all []Phrase, between string) Phrase {
	var joined Phrase
	for i, p := range all {
		if i > 0 {
			joined = joined.with(Quantity{Text: between})
		}
		joined = append(joined, p...)
	}
	return joined
}

// Spanned merges phrases of the same Kind: it returns the first one, with each figure replaced by its range over all
// phrases.
func Spanned(all []Phrase) Phrase {
	if len(all) == 1 {
		return all[0]
	}
	figures := make([][]part, len(all))
	for i, p := range all {
		figures[i] = slices.DeleteFunc(slices.Clone(p), func(q part) bool { return q.Value == nil })
	}
	spanned := slices.Clone(all[0])
	at := 0
	for i, q := range spanned {
		if q.Value == nil {
			continue
		}
		var column []Quantity
		for n := range figures {
			q := figures[n][at]
			if column = append(column, q.Quantity); q.low != nil {
				column = append(column, *q.low)
			}
		}
		by := func(a, b Quantity) int { return cmp.Compare(*a.Value, *b.Value) }
		low := slices.MinFunc(column, by)
		spanned[i] = part{slices.MaxFunc(column, by), &low}
		at++
	}
	return spanned
}

// String returns the text of the part, for a range as in "12–78%".
func (p part) String() string {
	if p.low == nil || p.low.Text == p.Text {
		return p.Text
	}
	low := p.low.Text
	number, unit := withoutUnit(low)
	if _, other := withoutUnit(p.Text); number != "" && strings.HasPrefix(other, unit) { // "1 key", "3 keys"
		low = number
	}
	return low + "–" + p.Text
}

// withoutUnit splits a figure into its number and the unit after it. For a duration in Go's format, or a text without a
// number, number is "" and unit the whole text.
func withoutUnit(text string) (number, unit string) {
	if _, err := time.ParseDuration(text); err == nil {
		return "", text
	}
	end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		end = len(text)
	}
	if _, err := strconv.ParseFloat(text[:end], 64); err != nil {
		return "", text
	}
	return text[:end], text[end:]
}
