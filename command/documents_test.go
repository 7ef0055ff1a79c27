package command

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	conformance "github.com/lockbench/lockbench/internal/apps/check"
	"github.com/lockbench/lockbench/internal/apps/doctor"
	"github.com/lockbench/lockbench/internal/apps/limits"
	"github.com/lockbench/lockbench/internal/apps/observe"
	"github.com/lockbench/lockbench/internal/apps/selfcheck"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/compare"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// monitorLines is the output of MONITOR while one client holds a lock and another retries SET NX every few
// milliseconds.
const monitorLines = `1700000000.000001 [0 127.0.0.1:5] "SET" "order:7" "a" "NX" "PX" "50"
1700000000.010001 [0 127.0.0.1:6] "SET" "order:7" "b" "NX" "PX" "50"
1700000000.020001 [0 127.0.0.1:6] "SET" "order:7" "b" "NX" "PX" "50"
1700000000.090001 [0 127.0.0.1:6] "SET" "order:7" "b" "NX" "PX" "50"
1700000000.095001 [0 127.0.0.1:6] "DEL" "order:7"
`

// documentsOf covers each kind of document other than a report. It maps the document's schema to an example and to a
// text that the example's printout must contain.
func documentsOf(t *testing.T) map[string][2]string {
	t.Helper()
	all := map[string][2]string{}
	add := func(document any, seen string) {
		text, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		all[schemaOf(text)] = [2]string{string(text), seen}
	}
	for file, seen := range map[string]string{
		"advise/testdata/advice.json": "EVIDENCE", "claims/testdata/claims.json": "1.",
	} {
		text, err := os.ReadFile("../internal/apps/" + file)
		if err != nil {
			t.Fatal(err)
		}
		add(json.RawMessage(text), seen)
	}
	check := &conformance.Document{Strategy: "mine", Claims: []string{"exclusion"}, Checks: []conformance.Result{{
		Check: "excludes", Verdict: locktest.Broken, Failures: []conformance.Failure{{Promise: "one", Seen: "two"}},
	}}}
	check.Schema = "lockbench/check/1"
	add(check, "two")
	examined := &doctor.Document{Symptoms: []results.Symptom{{
		Name: "limits", State: results.Note, Says: []string{"low"},
	}}}
	examined.Schema = "lockbench/doctor/1"
	add(examined, "note: low")
	limit := &limits.Document{Locks: []limits.Lock{{Name: "mine", Low: new(10.0)}}}
	limit.Schema = "lockbench/limits/1"
	add(limit, "mine")
	seen, err := observe.Read(t.Context(), strings.NewReader(monitorLines), observe.Options{Top: 1})
	if err != nil {
		t.Fatal(err)
	}
	add(seen, "order:7")
	itself := &selfcheck.Document{Checks: []selfcheck.Check{{
		Name: "holds", Verdict: selfcheck.Pass, Measured: []selfcheck.Measure{{Name: "hold", Value: new(1.0)}},
	}}}
	itself.Schema = "lockbench/selfcheck/1"
	add(itself, "holds")
	add(&compare.Comparison{
		Schema: compare.Schema, Method: compare.MethodPaired, Verdict: compare.NoneFound,
		Strategies: []compare.Strategy{{
			Name: "spin", Results: []compare.Result{{Metric: "acq_per_s", Delta: new(0.1)}},
		}},
	}, "spin")
	return all
}

func TestReportPrintsEveryDocument(t *testing.T) {
	t.Parallel()
	documents, dir := documentsOf(t), t.TempDir()
	sources, err := filepath.Glob("../internal/apps/*/*.go")
	if err != nil || len(sources) == 0 {
		t.Fatal(err)
	}
	for _, source := range append(sources, "../results/compare/comparison.go") {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`chema = "(lockbench/[^"]+)"`).FindAllSubmatch(text, -1) {
			if written[string(found[1])] == nil || documents[string(found[1])][0] == "" {
				t.Errorf("%s has %s, which report does not print", source, found[1])
			}
		}
	}
	for schema, document := range documents {
		file := filepath.Join(dir, strings.ReplaceAll(schema, "/", "-"))
		if err := os.WriteFile(file, []byte(document[0]), 0o600); err != nil {
			t.Fatal(err)
		}
		report := func(args ...string) (code int, said string) {
			var out, complaints bytes.Buffer
			a := &app{stdout: &out, stderr: &locked{to: &complaints}}
			code = a.execute(t.Context(), append([]string{"report", file}, args...), nil)
			return code, out.String() + complaints.String()
		}
		if code, said := report(); code != ExitOK || !strings.Contains(said, document[1]) {
			t.Errorf("%s: %d, it prints\n%s", schema, code, said)
		}
		if code, said := report("-o", file+".html"); code != ExitConfig || !strings.Contains(said, "prints this file") {
			t.Errorf("%s as a page: %d, %s", schema, code, said)
		}
	}
}

// TestHostileDocuments prints documents in which one value is replaced by null, an empty list or object, or a value of
// another type. lockbench must not panic, and its output must not contain terminal escape sequences.
func TestHostileDocuments(t *testing.T) {
	t.Parallel()
	tried := 0
	for schema, document := range documentsOf(t) {
		for _, spoilt := range []any{nil, []any{}, map[string]any{}, "\x1b[2J", -1e300} {
			var root any
			if err := json.Unmarshal([]byte(document[0]), &root); err != nil {
				t.Fatal(err)
			}
			shorten(root)
			text, err := json.Marshal(root)
			if err != nil {
				t.Fatal(err)
			}
			if err := written[schema](io.Discard, text, 120, false); err != nil {
				t.Errorf("%s: what is spoilt is refused before: %v", schema, err)
			}
			replaceEach(root, spoilt, func() {
				text, err := json.Marshal(root)
				if err != nil {
					t.Fatal(err)
				}
				tried++
				defer func() {
					if what := recover(); what != nil {
						t.Errorf("%s: %v: %s", schema, what, text)
					}
				}()
				var out bytes.Buffer
				_ = written[schema](&out, text, 120, false) // an error is allowed, a panic is not
			})
		}
	}
	if tried < 1000 {
		t.Errorf("only %d documents were tried", tried)
	}
}

// shorten cuts each list in a document to its first three elements, because the elements of a list are similar.
func shorten(of any) any {
	switch of := of.(type) {
	case map[string]any:
		for key, value := range of {
			of[key] = shorten(value)
		}
	case []any:
		for i, value := range of {
			of[i] = shorten(value)
		}
		return of[:min(3, len(of))]
	}
	return of
}

// replaceEach replaces each value in a decoded document, one at a time, by the value spoilt. It calls try while a value
// is replaced, and then restores the value.
func replaceEach(of, spoilt any, try func()) {
	switch of := of.(type) {
	case map[string]any:
		for key, was := range of {
			replaceEach(was, spoilt, try)
			of[key] = spoilt
			try()
			of[key] = was
		}
	case []any:
		for i, was := range slices.Clone(of) {
			replaceEach(was, spoilt, try)
			of[i] = spoilt
			try()
			of[i] = was
		}
	}
}
