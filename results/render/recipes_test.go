package render

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/itchyny/gojq"

	"github.com/lockbench/lockbench/results"
)

// The output of the jq commands in docs/REGRESSIONS.md must have the format that the tools read. It must omit runs that
// cannot be trusted, and lower bounds.
func TestJqRecipes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/REGRESSIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	recipes := regexp.MustCompile("(?s)```jq\n(.*?)\n```").FindAllStringSubmatch(string(page), -1)
	wants := []string{
		`[{"name":"redsync/wait_p99","unit":"ns","value":7000000}]`,
		`[{"name":"redsync/acq_per_s","unit":"acq/s","value":200},{"name":"spin/acq_per_s","unit":"acq/s",` +
			`"value":411}]`,
		`{"redsync":{"acq_per_s":{"lower_value":100,"upper_value":300,"value":200}},` +
			`"spin":{"acq_per_s":{"lower_value":411,"upper_value":411,"value":411}}}`,
		`"\"2026-03-01T12:30:00Z\",\"abc\",\"main\",200,411"`,
	}
	if len(recipes) != len(wants) {
		t.Fatalf("%d recipes, want %d", len(recipes), len(wants))
	}
	p99 := func(ms float64, bound bool) results.Waiting {
		var w results.Waiting
		w.PerAcquisition.P99 = &results.Bound{NS: int64(ms * 1e6), AtLeast: bound}
		return w
	}
	report := &results.Report{
		Started: sample(t, "recorded").Started, Tool: results.Tool{Commit: "abc", Branch: "main"},
		Runs: []results.Run{
			{Strategy: "spin", Speed: results.Speed{PerSecond: 411}, Waiting: p99(9, true)},
			{Strategy: "redsync", Speed: results.Speed{PerSecond: 300}, Waiting: p99(8, false)},
			{Strategy: "redsync", Speed: results.Speed{PerSecond: 100}, Waiting: p99(6, false)},
			{Strategy: "redsync", Speed: results.Speed{PerSecond: 200}, Waiting: p99(7, false)},
			{
				Strategy: "redsync", Speed: results.Speed{PerSecond: 999}, Waiting: p99(1, false),
				Invalid: results.PlainTexts("late"),
			},
			{Strategy: "spin", Speed: results.Speed{PerSecond: 999}, Waiting: p99(1, false), Failure: "gone"},
		},
	}
	var document strings.Builder
	if err := results.WriteJSON(&document, report); err != nil {
		t.Fatal(err)
	}
	var input any
	if err := json.Unmarshal([]byte(document.String()), &input); err != nil {
		t.Fatal(err)
	}
	for i, recipe := range recipes {
		query, err := gojq.Parse(recipe[1])
		if err != nil {
			t.Fatalf("%s: %v", recipe[1], err)
		}
		result, _ := query.Run(input).Next()
		var want any
		if err := json.Unmarshal([]byte(wants[i]), &want); err != nil {
			t.Fatal(err)
		}
		got, _ := json.Marshal(result)
		wanted, _ := json.Marshal(want)
		if string(got) != string(wanted) {
			t.Errorf("%s\nmakes %s\nwant  %s", recipe[1], got, wanted)
		}
	}
}
