package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/command"
)

// order matches a manual page whose sections are in the order of man-pages(7).
var order = regexp.MustCompile(
	`(?s)\.SH OPTIONS.*\.SH ENVIRONMENT.*\.SH FILES.*\.SH EXIT STATUS.*\.SH SEE ALSO`)

// The manual pages of lockbench and of lockbench run must have their sections in the order of man-pages(7), and must
// contain every entry of command.Manual.
func TestManPagesHaveAllSections(t *testing.T) {
	dir := t.TempDir()
	if err := write([]string{dir}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lockbench.1", "lockbench-run.1"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		page := string(text)
		if !order.MatchString(page) {
			t.Errorf("the sections of %s are not in order:\n%s", name, page)
		}
		for _, section := range command.Manual() {
			for _, entry := range section.Entries {
				if !strings.Contains(page, "\n\\fB"+roff(entry.Name)+"\\fP\n"+roff(entry.Meaning)+"\n") {
					t.Errorf("%s: %s has no %s", name, section.Title, entry.Name)
				}
			}
		}
		if strings.Contains(page, "(default )") {
			t.Errorf("%s has an empty default", name)
		}
	}
	if err := write(nil); err == nil {
		t.Error("no folder is no mistake")
	}
}
