package results_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

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

func TestJSONComesBackAsWritten(t *testing.T) {
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

// counter is a writer that counts what it is given.
type counter int

func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }

func TestJSONWritesAllOrNothing(t *testing.T) {
	r := golden.Report(t, "testdata/normal.json")
	r.Runs[0].Speed.PerSecond = math.NaN()
	var written counter
	if err := results.WriteJSON(&written, r); err == nil || written != 0 {
		t.Errorf("NaN: error %v, %d bytes written", err, written)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("disk on fire") }

func TestReadJSONSaysWhatIsWrong(t *testing.T) {
	whole := encoded(t, golden.Report(t, "testdata/normal.json"))
	with := func(schema string) string { return strings.Replace(whole, results.Schema, schema, 1) }
	for _, test := range []struct{ name, document, want string }{
		{"empty", " \n", "the document is empty"},
		{"text", "goos: linux\n", "not a lockbench report"},
		{"other object", `{"benchmarks": []}`, `its schema is ""`},
		{"array", `[1, 2]`, "not a lockbench report"},
		{"other schema", with("k6/summary/1"), `its schema is "k6/summary/1"`},
		{"newer", with("lockbench/report/2"), `its schema is "lockbench/report/2", not "lockbench/report/1"`},
		{"half", whole[:len(whole)/2], "truncated after"},
		{"all but the end", strings.TrimRight(whole, "}\n"), "truncated after"},
		{"two documents", whole + whole, "not a lockbench report"},
		{"wrong type", strings.Replace(whole, `"rounds": 1`, `"rounds": "one"`, 1), "rounds"},
	} {
		t.Run(test.name, func(t *testing.T) {
			report, err := results.ReadJSON(strings.NewReader(test.document))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q does not say %q", err, test.want)
			}
			if report != nil {
				t.Error("a report came with the error")
			}
		})
	}
	if _, err := results.ReadJSON(brokenReader{}); err == nil || !strings.Contains(err.Error(), "disk on fire") {
		t.Errorf("the reader's error is lost: %v", err)
	}
}

func TestReadJSONIgnoresNewFields(t *testing.T) {
	document := strings.Replace(encoded(t, golden.Report(t, "testdata/normal.json")), `"rounds": 1`,
		`"rounds": 1, "colour": "blue"`, 1)
	if _, err := results.ReadJSON(strings.NewReader(document)); err != nil {
		t.Error(err)
	}
}

func TestReadJSONFindsDamagedHistograms(t *testing.T) {
	whole := encoded(t, golden.Report(t, "testdata/recorded.json"))
	if _, err := results.ReadJSON(strings.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	at := strings.Index(whole, `"hdr": "`) + 60
	for _, damaged := range []string{
		whole[:at] + "////" + whole[at+4:],
		strings.Replace(whole, `"hdr": "`, `"hdr": "!`, 1),
		strings.Replace(whole, `"turns_hdr": "HIST`, `"turns_hdr": "`, 1),
	} {
		if damaged == whole {
			t.Fatal("nothing was damaged")
		}
		if _, err := results.ReadJSON(strings.NewReader(damaged)); err == nil ||
			!strings.Contains(err.Error(), "report is damaged: ") {
			t.Errorf("error %v", err)
		}
	}
}
