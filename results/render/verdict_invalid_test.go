package render

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results/internal/sample"
)

// Whatever the audit saw of a run that cannot be trusted, nobody reads "held".
func TestInvalidRunsAreNeverHeld(t *testing.T) {
	for invalid, want := range []string{"held", "held in 2 of 3", "held in 1 of 3", "INVALID"} {
		r := sample.Report()
		r.Rounds, r.Strategies = 3, r.Strategies[:1]
		r.Runs = nil
		for round := range 3 {
			run := sample.Run("spin", round+1, 400, 1)
			run.Invalid = nil
			if round < invalid {
				run.Invalid = []string{fmt.Sprintf("planted %d", round)}
			}
			r.Runs = append(r.Runs, run)
		}
		if got := r.Summaries()[0].Verdict(); got != want {
			t.Errorf("with %d of 3 runs invalid the verdict is %q, want %q", invalid, got, want)
		}
		var table, markdown bytes.Buffer
		if err := WriteTables(&table, r, false); err != nil {
			t.Fatal(err)
		}
		if err := WriteMarkdown(&markdown, r); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{table.String(), markdown.String()} {
			if safety := text[strings.Index(text, "SAFETY"):]; strings.Contains(safety, "held") != (invalid < 3) {
				t.Errorf("with %d of 3 runs invalid:\n%s", invalid, safety)
			}
		}
	}
}

// What broke is told of every run, trusted or not.
func TestInvalidRunsThatBrokeAClaimSaySo(t *testing.T) {
	r := sample.Report()
	r.Runs[0].Invalid, r.Runs[0].Safety.Broken = []string{"planted"}, []string{"exclusion: 3 overlaps"}
	for _, s := range r.Summaries() {
		if s.Name == r.Runs[0].Strategy && s.Verdict() != "BROKEN: exclusion" {
			t.Errorf("%s: %s", s.Name, s.Verdict())
		}
	}
}
