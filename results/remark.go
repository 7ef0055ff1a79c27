package results

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
)

// Remark is a statement that a reader needs in order to interpret figures, for example why they cannot be trusted, what
// limits them, or what was left out. codes.go lists all remarks. Programs must distinguish remarks by their codes and
// not by their texts.
type Remark struct {
	Code     Code     `json:"code"`               // see docs/VALIDITY.md; "" if an earlier build wrote a plain text
	Severity Severity `json:"severity,omitempty"` // "" for a plain text
	// Figures holds the variable parts of the text. The keys are the names in braces in codes.go.
	Figures map[string]Quantity `json:"figures,omitempty"`
	Text    string              `json:"text"`
}

// Severity states what a remark means for the figures of a run.
type Severity string

// The severities are in ascending order.
const (
	SeverityNote    Severity = "note"    // how the figures were obtained
	SeverityCaution Severity = "caution" // the figures are right but mean less than they seem to
	SeverityInvalid Severity = "invalid" // the figures cannot be trusted
	SeverityBroken  Severity = "broken"  // a lock broke one of its claims
)

// Severities returns all severities in ascending order.
func Severities() []Severity {
	return []Severity{SeverityNote, SeverityCaution, SeverityInvalid, SeverityBroken}
}

// Remark returns the remark of the code. parts replace the names in braces in the code's text, in the same order. Each
// part is a figure (a Quantity, a number or a duration) or words.
func (c Code) Remark(parts ...any) Remark {
	r := Remark{Code: c, Severity: c.row().severity}
	_, names := c.row().parts()
	for i, name := range names {
		if i < len(parts) {
			r = r.With(name, parts[i])
		}
	}
	r.Text = r.pattern().String()
	if len(names) == 1 && r.Figures[names[0]] == (Quantity{Text: r.Text}) { // the text is only this part
		r.Figures = nil
	}
	return r
}

// With returns the remark with one more named part, which need not occur in its text.
func (r Remark) With(name string, part any) Remark {
	figures := map[string]Quantity{name: quantity(part)}
	for known, q := range r.Figures {
		if known != name {
			figures[known] = q
		}
	}
	r.Figures = figures
	return r
}

// of returns a copy of the remark whose text begins with before and ends with after. The copy also has a figure with
// the names of the generators that the remark concerns.
func (r Remark) of(before, generators, after string) Remark {
	r = r.With("generators", generators)
	r.Text = before + r.Text + after
	return r
}

// PlainText returns a remark that has a text but no code and no severity.
func PlainText(text string) Remark { return Remark{Text: text} }

// String returns the remark's text without its explanation.
func (r Remark) String() string { return r.Text }

// Explained returns the text followed by the code's explanation, if it has one.
func (r Remark) Explained() string { return r.Text + r.Code.Explanation() }

// pattern returns the code's text in codes.go with its names in braces replaced by the remark's figures.
func (r Remark) pattern() Phrase {
	words, names := r.Code.row().parts()
	var p Phrase
	for i, word := range words {
		if word != "" {
			p = p.with(Quantity{Text: word})
		}
		if i < len(names) {
			p = p.with(r.Figures[names[i]])
		}
	}
	return p
}

// Phrase returns the text divided into words and figures. Whatever precedes or follows the text of the code counts as
// words. If the text does not contain the text of its code, for example because another build wrote it, the whole text
// is a single part.
func (r Remark) Phrase() Phrase {
	p := r.pattern()
	before, after, found := strings.Cut(r.Text, p.String())
	if r.Code == "" || !found {
		return Phrasef("%s", r.Text)
	}
	return Phrasef("%s%s%s", before, p, after)
}

// UnmarshalJSON also accepts a plain string, as earlier builds wrote it, and makes it a remark without a code.
func (r *Remark) UnmarshalJSON(document []byte) error {
	var text string
	if json.Unmarshal(document, &text) == nil {
		*r = PlainText(text)
		return nil
	}
	type plain Remark // without this method
	return json.Unmarshal(document, (*plain)(r))
}

// Remarks is a list of remarks about the same run, report or comparison.
type Remarks []Remark

// String joins the texts of all remarks with semicolons.
func (all Remarks) String() string { return strings.Join(all.Texts(), "; ") }

// Texts returns the text of each remark, in order.
func (all Remarks) Texts() []string {
	var texts []string
	for _, r := range all {
		texts = append(texts, r.Text)
	}
	return texts
}

// Has reports whether there is a remark with one of the codes.
func (all Remarks) Has(codes ...Code) bool {
	return slices.ContainsFunc(all, func(r Remark) bool { return slices.Contains(codes, r.Code) })
}

// Once returns the list followed by those remarks of more whose texts it does not contain yet.
func (all Remarks) Once(more ...Remark) Remarks {
	for _, r := range more {
		if !slices.ContainsFunc(all, func(known Remark) bool { return known.Text == r.Text }) {
			all = append(all, r)
		}
	}
	return all
}

// PlainTexts returns remarks without a code.
func PlainTexts(texts ...string) Remarks {
	var all Remarks
	for _, text := range texts {
		all = append(all, PlainText(text))
	}
	return all
}

// CountOf returns a number with its noun: "1 key", "3 keys".
func CountOf(n int, noun string) Quantity { return Written(float64(n), words.Count(n, noun)) }
