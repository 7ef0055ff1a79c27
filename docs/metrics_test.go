package docs_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestExamplesMatchReadmeRun checks that each example in METRICS.md quotes a figure of the run that README.md
// shows.
func TestExamplesMatchReadmeRun(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := os.ReadFile("METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, demo, _ := strings.Cut(string(readme), "<!-- demo -->")
	demo, _, _ = strings.Cut(demo, "<!-- /demo -->")
	// At least two spaces separate columns; one space separates a figure from its unit.
	rows := map[string][]string{}
	for line := range strings.Lines(demo) {
		if cells := regexp.MustCompile(`\s{2,}`).Split(strings.TrimSpace(line), -1); len(cells) == 9 {
			rows[cells[0]] = cells[1:]
		}
	}
	const acq, gap, wait, starved, commands, cpu = 0, 1, 3, 4, 5, 6
	of := func(strategy string, column int) string {
		if rows[strategy] == nil {
			t.Fatalf("README.md's run has no row of %s: %v", strategy, rows)
		}
		return rows[strategy][column]
	}
	number := func(figure string) float64 {
		text, _, _ := strings.Cut(figure, " ")
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	share := func(strategy string) string {
		return fmt.Sprintf("%s × %s/s is %.0f %%", of(strategy, cpu), of(strategy, acq),
			number(of(strategy, cpu))*number(of(strategy, acq))/1e6*100)
	}
	turn := 1 + number(of("handoff", gap))/1000
	for _, want := range []string{
		fmt.Sprintf("pubsub left %s of 500 without an acquisition, handoff %s", of("pubsub", starved),
			of("handoff", starved)),
		fmt.Sprintf("500 × %.2f ms = %.0f ms, and handoff had %s", turn, 500*turn, of("handoff", wait)),
		fmt.Sprintf("handoff %s, spin %s, pubsub %s", of("handoff", gap), of("spin", gap), of("pubsub", gap)),
		fmt.Sprintf("1,000/s, and handoff had %s/s", of("handoff", acq)),
		fmt.Sprintf("pubsub needed %s at 500", of("pubsub", commands)),
		fmt.Sprintf("%s of a core, %s", share("spin"), share("handoff")),
	} {
		if !strings.Contains(string(metrics), want) {
			t.Errorf("METRICS.md has not %q", want)
		}
	}
}
