package claims

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
)

// The document in testdata contains every verdict on a claim and on a figure, and texts that must be escaped or
// wrapped. Its pages must equal the golden files.
func TestClaimsOutput(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("testdata/claims.json")
	if err != nil {
		t.Fatal(err)
	}
	var d Document
	if err := json.Unmarshal(content, &d); err != nil {
		t.Fatal(err)
	}
	for file, write := range map[string]func(*bytes.Buffer) error{
		"claims.txt":  func(b *bytes.Buffer) error { return document.WriteTable(b, &d, 120, false) },
		"claims.json": func(b *bytes.Buffer) error { return document.WriteJSON(b, &d) },
		"claims.md":   func(b *bytes.Buffer) error { return document.WriteMarkdown(b, &d) },
	} {
		var written bytes.Buffer
		if err := write(&written); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "testdata/"+file, written.String())
	}
	if names := d.Invalid(); !slices.Equal(names, []string{"mine"}) {
		t.Errorf("invalid are %q", names)
	}
	if n, failed := d.CounterCases(); n != 3 || !slices.Equal(failed, []string{"claim 8, wake-ups, pubsub ÷ spin"}) {
		t.Errorf("%d counter-cases, %q failed", n, failed)
	}
}

// The text of a median must mark it as a lower bound if one of the smaller values is a lower bound.
func TestFigureText(t *testing.T) {
	t.Parallel()
	least := func(v float64) *results.Figure { return &results.Figure{Value: v, AtLeast: true} }
	for want, f := range map[string]FigureResult{
		"≥ 2 (≥ 1 … 3)":                           {Values: append(figures(3, 2), least(1))},
		"2 (1 … ≥ 3), not known in 1 of 4 rounds": {Values: append(figures(1, 2), nil, least(3))},
		"5 in total, not known in 1 of 3 rounds":  {Limits: Limits{Total: true}, Values: append(figures(3, 2), nil)},
		"7, not known in 2 of 3 rounds":           {Values: append(figures(7), nil, nil)},
	} {
		if got := f.valueText(); got != want {
			t.Errorf("it reads %q, want %q", got, want)
		}
	}
}
