package command

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/workloads"
)

// remark matches the comment after a command line on a page.
var remark = regexp.MustCompile(` +# .*$`)

// replayed maps file names to contents. In the examples, observe writes these files and a later command reads them. The
// test itself writes them before each command.
var replayed = map[string]string{
	"observed.yaml": "arrivals: file:arrivals.csv\n", "arrivals.csv": workloads.TraceHeader + "\n0,a,1ms\n1,a,1ms\n",
}

// The test executes the command lines in README.md and docs/USAGE.md. It executes lockbench list unchanged and adds
// --dry-run to runs. It skips all other commands, which read files or measure.
func TestPageExamplesAreValid(t *testing.T) {
	tried := 0
	for _, page := range []string{"README.md", "docs/USAGE.md"} {
		text, err := os.ReadFile(filepath.Join("..", page))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			line = remark.ReplaceAllString(strings.TrimSuffix(line, "\n"), "")
			if !strings.HasPrefix(line, "    ") || !strings.Contains(" "+line, " lockbench ") {
				continue
			}
			variables, args := shellWords(line)
			switch {
			case leftOut(buildTags(), line) != "":
				continue // make others tests it
			case len(args) == 0 || strings.HasPrefix(args[0], "-"):
				args = append(args, "--dry-run")
			case args[0] != "list":
				continue // it reads files, or measures
			}
			tried++
			t.Run(strings.TrimSpace(line), func(t *testing.T) {
				t.Chdir(t.TempDir())
				for name, text := range replayed {
					if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				for _, v := range variables {
					name, value, _ := strings.Cut(v, "=")
					t.Setenv(name, value)
				}
				if code, _, stderr := said(t, args...); code != 0 {
					t.Errorf("%s: exit code %d, said %s", page, code, stderr)
				}
			})
		}
	}
	if tried < 20 {
		t.Errorf("only %d examples were found", tried)
	}
}

// link matches a Markdown link to a file of the project, with an optional heading.
var link = regexp.MustCompile(`\]\(([^):#]+)(#[^)]*)?\)`)

// Each relative link on a Markdown page must lead to an existing file and heading.
func TestPageLinksExist(t *testing.T) {
	var pages []string
	for _, folder := range []string{"", "docs", "docs/evidence", "strategies/*"} {
		found, _ := filepath.Glob(filepath.Join("..", folder, "*.md"))
		pages = append(pages, found...)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range link.FindAllStringSubmatch(string(text), -1) {
			target := filepath.Join(filepath.Dir(page), found[1])
			content, err := os.ReadFile(target)
			if stat, wrong := os.Stat(target); wrong == nil && stat.IsDir() {
				err = nil
			}
			if err != nil {
				t.Errorf("%s links to %s: %v", page, found[1], err)
				continue
			}
			if found[2] != "" && !strings.Contains(headings(string(content)), found[2]+"\n") {
				t.Errorf("%s links to %s, which has no %s", page, found[1], found[2])
			}
		}
	}
}

// headings returns the headings and the anchors of a page, one per line, in the form that links use.
func headings(page string) string {
	var all strings.Builder
	unfit := regexp.MustCompile("[^a-z0-9 _-]")
	for line := range strings.Lines(page) {
		if id, found := strings.CutPrefix(strings.TrimSpace(line), `<a id="`); found {
			all.WriteString("#" + strings.TrimSuffix(id, `"></a>`) + "\n")
		}
		if level, title, found := strings.Cut(strings.TrimSpace(line), " "); found && strings.Trim(level, "#") == "" {
			all.WriteString("#" + strings.ReplaceAll(unfit.ReplaceAllString(strings.ToLower(title), ""), " ", "-") +
				"\n")
		}
	}
	return all.String()
}
