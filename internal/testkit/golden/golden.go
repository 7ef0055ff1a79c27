// Package golden compares the output of tests with golden files, and reads the reports that tests use as input.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/results"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Compare fails the test if got differs from the contents of the file, whose name is relative to the test's folder.
// With -update it writes the file first.
func Compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update accepts the new text):\n%s", file, diff)
	}
}

// Section compares got with the part of a file between the texts begin and end. The test fails if they differ or if the
// file lacks one of the two texts. With -update it writes the part first.
func Section(t *testing.T, file, begin, end, got string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s has no %s … %s", file, begin, end)
	}
	Compare(t, file, before+begin+got+end+after)
}

// Report returns the report in a file. The test fails if the file is not a valid report.
func Report(t testing.TB, file string) *results.Report {
	t.Helper()
	document, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer document.Close()
	r, err := results.ReadJSON(document)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return r
}

// Reports returns the reports in a folder. The keys are the file names without .json.
func Reports(t testing.TB, dir string) map[string]*results.Report {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no reports in %s: %v", dir, err)
	}
	all := map[string]*results.Report{}
	for _, file := range files {
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = Report(t, file)
	}
	return all
}
