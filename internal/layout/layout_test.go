package layout

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/tw"
)

func TestNoLineOfATerminalIsWiderThanThePage(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"words": strings.Repeat("word ", 90), "one word": strings.Repeat("x", 300),
		"wide letters": strings.Repeat("錠", 90),
	} {
		p := &Page{}
		p.Entry("label", text)
		p.Point("about", text)
		p.Remark("! ", text)
		for line := range strings.Lines(p.String()) {
			if width := twwidth.Width(strings.TrimSuffix(line, "\n")); width > Width {
				t.Errorf("%s: a line has %d columns: %s", name, width, line)
			}
		}
		letter := string([]rune(text)[len([]rune(text))/2])
		if got, want := strings.Count(p.String(), letter), 3*strings.Count(text, letter); got < want {
			t.Errorf("%s: %q is there %d times, want %d:\n%s", name, letter, got, want, p)
		}
	}
}

// TestCommandsCanBePasted: a shell reads the lines of a page as the one command.
func TestCommandsCanBePasted(t *testing.T) {
	t.Parallel()
	many := strings.TrimSpace(strings.Repeat("--option value ", 30))
	for _, line := range []string{
		"echo short", "echo " + many, "echo " + many +
			" 'a word  with \\ and '\\''quotes'\\'' and many, many, many more words in it' " + many,
		"echo " + many + "  # a comment that is not to be broken " + many,
	} {
		p := &Page{}
		p.Command(line)
		want, err := exec.Command("sh", "-c", line).Output()
		if err != nil {
			t.Fatal(err)
		}
		got, err := exec.Command("sh", "-c", p.String()).CombinedOutput()
		if err != nil || string(got) != string(want) {
			t.Errorf("%v: the page says %q, the command %q:\n%s", err, got, want, p)
		}
		for n, row := range strings.Split(p.String(), "\n") {
			if len(row) > Width && !strings.ContainsAny(row, "'#") {
				t.Errorf("line %d has %d columns: %s", n, len(row), row)
			}
		}
	}
}

func TestMarkdownKeepsWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	p := &Page{Markdown: true, Paint: true}
	p.Entry("a|b", "x_y")
	p.Entry("", "and *more*")
	p.Entry("silent", "")
	if err := p.Grid([]tw.Align{tw.AlignLeft, tw.AlignRight},
		[][]string{{"name", "n"}, {p.Text("a|b"), "1"}}); err != nil {
		t.Fatal(err)
	}
	want := "- **a\\|b** x\\_y\n  and \\*more\\*\n| name | n |\n| --- | ---: |\n| a\\|b | 1 |\n"
	if p.String() != want {
		t.Errorf("it reads\n%s\nwant\n%s", p, want)
	}
}

func TestColumnsLeaveNoBlanksBehind(t *testing.T) {
	t.Parallel()
	p := &Page{}
	p.Columns([][]string{{"a", "1", ""}, {"longer", "2", "FAIL"}})
	var written strings.Builder
	if err := p.Save(&written, "page"); err != nil {
		t.Fatal(err)
	}
	if want := "  a       1\n  longer  2  FAIL\n"; written.String() != want {
		t.Errorf("it reads\n%s\nwant\n%s", written.String(), want)
	}
}
