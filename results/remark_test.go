package results_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
)

// docs/VALIDITY.md must list every code with its text, grouped by severity. Each code must be unique and have a text
// and a severity.
func TestEveryCodeIsDocumented(t *testing.T) {
	t.Parallel()
	lists := map[results.Severity]string{}
	known := map[results.Code]bool{}
	codes, texts := results.Codes()
	for i, code := range codes {
		if texts[i] == "" || code.Severity() == "" || known[code] {
			t.Errorf("%q is there twice, or has no text or severity", code)
		}
		known[code] = true
		lists[code.Severity()] += fmt.Sprintf("- `%s`: %s\n", code, texts[i])
	}
	var want strings.Builder
	for _, severity := range slices.Backward(results.Severities()) { // the worst first
		fmt.Fprintf(&want, "\n### %s\n\n%s", severity, lists[severity])
	}
	golden.Section(t, "../docs/VALIDITY.md", "<!-- remarks -->\n", "<!-- end of remarks -->\n", want.String()+"\n")
}

// TestRemarkCallsMatchTexts checks that each call of Remark has as many arguments as its text has placeholders, and
// that each constant of type Code has a row in the table of codes.
func TestRemarkCallsMatchTexts(t *testing.T) {
	t.Parallel()
	codes, texts := results.Codes()
	names := map[string]int{} // of the parts, by code
	for i, code := range codes {
		names[string(code)] = strings.Count(texts[i], "{")
	}
	constants, calls := map[string]string{}, map[string][]int{}
	each(t, "..", func(file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if kind, ok := n.Type.(*ast.Ident); ok && kind.Name == "Code" && len(n.Values) == 1 {
					constants[n.Names[0].Name] = strings.Trim(n.Values[0].(*ast.BasicLit).Value, `"`)
				}
			case *ast.CallExpr:
				if method, ok := n.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "Remark" {
					code := method.X
					if of, ok := code.(*ast.SelectorExpr); ok {
						code = of.Sel
					}
					if name, ok := code.(*ast.Ident); ok {
						calls[name.Name] = append(calls[name.Name], len(n.Args))
					}
				}
			}
			return true
		})
	})
	if len(constants) != len(codes) {
		t.Errorf("%d constants, and %d codes in the table", len(constants), len(codes))
	}
	checked := 0
	for constant, code := range constants {
		want, known := names[code]
		for _, got := range calls[constant] {
			if checked++; !known || got != want {
				t.Errorf("%s: a call has %d parts, its text %d", constant, got, want)
			}
		}
	}
	if checked < len(codes)/2 {
		t.Errorf("only %d calls were found", checked)
	}
}

// each parses every Go file in dir and its subfolders, except tests, and calls do with it.
func each(t *testing.T, dir string, do func(*ast.File)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err == nil {
			do(file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPhrasesAreJoined checks that texts that differ only in their figures are merged into one text with the range of
// the figures, and that merged texts can be merged again. Texts that differ in words must not be merged.
func TestPhrasesAreJoined(t *testing.T) {
	t.Parallel()
	took := func(d time.Duration) results.Phrase { return results.CutShort.Remark(d).Phrase() }
	keys := func(n int) results.Phrase { return results.WaitsNotEnded.Remark(results.CountOf(n, "key")).Phrase() }
	share := func(x float64) results.Phrase {
		return results.OtherCPU.Remark(results.Measured(x, "%.0f%%")).Phrase()
	}
	twice := results.Spanned([]results.Phrase{
		results.Spanned([]results.Phrase{share(50), share(78)}), results.Spanned([]results.Phrase{share(12), share(60)}),
	})
	want := []string{
		"partial: 250ms–1m45s", "waits that the driver could not end left 1–3 keys", "other CPU 12–78%",
		"other CPU 5%",
	}
	var got []string
	for _, p := range []results.Phrase{
		results.Spanned([]results.Phrase{took(105 * time.Second), took(250 * time.Millisecond)}),
		results.Spanned([]results.Phrase{keys(3), keys(1)}), twice,
		results.Spanned([]results.Phrase{share(5), share(5)}),
	} {
		got = append(got, p.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	of := func(fault string) string { return results.FaultAbsent.Remark(fault, "why 1").Phrase().Kind() }
	if share(1).Kind() != share(2).Kind() || share(1).Kind() == keys(1).Kind() || of("a 1") == of("a 2") {
		t.Error("the kinds of figures are not equal, or those of words are")
	}
}
