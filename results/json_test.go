package results_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
)

func encoded(t *testing.T, r *results.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := results.WriteJSON(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestJSONRoundTrip(t *testing.T) {
	for name, report := range golden.Reports(t, "testdata") {
		got, err := results.ReadJSON(strings.NewReader(encoded(t, report)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(report.Runs) == 0 {
			report.Runs = []results.Run{}
		}
		if diff := cmp.Diff(report, got); diff != "" {
			t.Errorf("%s (-written +read):\n%s", name, diff)
		}
	}
}

func TestJSONOfZeros(t *testing.T) {
	document := encoded(t, &results.Report{Runs: []results.Run{{}}})
	if !json.Valid([]byte(document)) || !strings.Contains(document, `"schema": "`+results.Schema+`"`) {
		t.Errorf("zeros are written as\n%s", document)
	}
	if empty := encoded(t, &results.Report{}); !strings.Contains(empty, `"runs": []`) ||
		!strings.Contains(empty, `"strategies": []`) {
		t.Errorf("empty lists are written as\n%s", empty)
	}
}

func TestReadJSONErrors(t *testing.T) {
	whole := encoded(t, golden.Report(t, "testdata/normal.json"))
	recorded := encoded(t, golden.Report(t, "testdata/recorded.json"))
	at := strings.Index(recorded, `"hdr": "`) + 60
	with := func(schema string) string { return strings.Replace(whole, results.Schema, schema, 1) }
	for _, test := range []struct{ name, document, want string }{
		{"empty", " \n", "unexpected end"},
		{"text", "goos: linux\n", "not a complete lockbench report"},
		{"other object", `{"benchmarks": []}`, `its schema is ""`},
		{"array", `[1, 2]`, "not a complete lockbench report"},
		{"other schema", with("k6/summary/1"), `its schema is "k6/summary/1"`},
		{"newer", with("lockbench/report/2"), `its schema is "lockbench/report/2", not "lockbench/report/1"`},
		{"half", whole[:len(whole)/2], "not a complete lockbench report"},
		{"all but the end", strings.TrimRight(whole, "}\n"), "unexpected end"},
		{"two documents", whole + whole, "not a complete lockbench report"},
		{"wrong type", strings.Replace(whole, `"rounds": 1`, `"rounds": "one"`, 1), "rounds"},
		{"damaged", recorded[:at] + "////" + recorded[at+4:], "damaged histogram: "},
		{"no base64", strings.Replace(recorded, `"hdr": "`, `"hdr": "!`, 1), "damaged histogram: "},
		{"cut", strings.Replace(recorded, `"turns_hdr": "HIST`, `"turns_hdr": "`, 1), "damaged histogram: "},
	} {
		if test.document == whole || test.document == recorded {
			t.Fatalf("%s: nothing is wrong", test.name)
		}
		report, err := results.ReadJSON(strings.NewReader(test.document))
		if err == nil || !strings.Contains(err.Error(), test.want) || report != nil {
			t.Errorf("%s: error %q does not say %q, or a report came with it", test.name, err, test.want)
		}
	}
	if _, err := results.ReadJSON(strings.NewReader(strings.Replace(whole, `"rounds": 1`,
		`"rounds": 1, "colour": "blue"`, 1))); err != nil {
		t.Errorf("a new field is refused: %v", err)
	}
	fire := errors.New("disk on fire")
	if _, err := results.ReadJSON(iotest.ErrReader(fire)); !errors.Is(err, fire) {
		t.Errorf("the reader's error is lost: %v", err)
	}
}

// TestRemarksOfEarlierBuilds checks that ReadJSON accepts remarks that are plain texts, as earlier builds wrote them,
// and reads them as remarks without a code.
func TestRemarksOfEarlierBuilds(t *testing.T) {
	t.Parallel()
	r, err := results.ReadJSON(strings.NewReader(`{"schema": "` + results.Schema + `", "warnings": ["w"],
		"left_out": [{"strategy": "s", "why": "l"}], "thresholds": [{"why": "t", "caution": "c"}],
		"runs": [{"invalid": ["i"], "labels": ["redis-bound"], "safety": {"broken_claims": ["exclusion: 3 overlaps"]}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	run, threshold := r.Runs[0], r.Thresholds[0]
	for _, remarks := range []results.Remarks{
		r.Warnings, run.Invalid, run.Labels, run.Safety.Broken,
		{r.LeftOut[0].Why, threshold.Why, threshold.Caution},
	} {
		for _, remark := range remarks {
			if remark.Text == "" || remark.Code != "" || remark.Severity != "" || remark.Figures != nil {
				t.Errorf("%+v", remark)
			}
		}
	}
	if got := r.Warnings.String() + run.Invalid.String() + r.LeftOut[0].Why.String(); got != "wil" || run.Valid() {
		t.Errorf("%q, valid %v", got, run.Valid())
	}
}
