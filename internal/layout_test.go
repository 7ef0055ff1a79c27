package internal_test

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/layout"
)

func TestTerminalLinesFitThePage(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"words": strings.Repeat("word ", 90), "one word": strings.Repeat("x", 300),
		"wide letters": strings.Repeat("錠", 90),
	} {
		p := &layout.Page{}
		p.Entry("label", text)
		p.Point("about", text)
		p.Remark("! ", text)
		for line := range strings.Lines(p.String()) {
			if width := layout.TextWidth(strings.TrimSuffix(line, "\n")); width > layout.Width {
				t.Errorf("%s: a line has %d columns: %s", name, width, line)
			}
		}
		letter := string([]rune(text)[len([]rune(text))/2])
		if got, want := strings.Count(p.String(), letter), 3*strings.Count(text, letter); got < want {
			t.Errorf("%s: %q is there %d times, want %d:\n%s", name, letter, got, want, p)
		}
	}
}

func TestMarkdownEscapesText(t *testing.T) {
	t.Parallel()
	p := &layout.Page{Markdown: true, Paint: true}
	p.Entry("a|b", "x_y")
	p.Entry("", "and *more*")
	p.Entry("silent", "")
	p.Grid("lr", [][]string{{"name", "n"}, {p.Text("a|b"), "1"}})
	want := "- **a\\|b** x\\_y\n  and \\*more\\*\n| name | n |\n| --- | ---: |\n| a\\|b | 1 |\n"
	if p.String() != want {
		t.Errorf("it reads\n%s\nwant\n%s", p, want)
	}
}

func TestTerminalGrid(t *testing.T) {
	t.Parallel()
	p := &layout.Page{Paint: true}
	p.Grid("lrl", [][]string{
		{"\nname", "n", "says"}, {p.Red("錠"), "1", "a"}, {"a long name"}, {"b", "22", p.Red("x\ny")},
	})
	want := "       n  says\nname\n──────────────\n錠     1  a\na long name\nb     22  x\n          y\n"
	got := strings.NewReplacer("\x1b[1;31m", "", "\x1b[0m", "").Replace(p.String())
	if got != want {
		t.Errorf("it reads\n%s\nwant\n%s", got, want)
	}
}

func TestColumnsHaveNoTrailingBlanks(t *testing.T) {
	t.Parallel()
	p := &layout.Page{}
	p.Columns("  ", [][]string{{"a", "1", ""}, {"longer", "2", "FAIL"}})
	var written strings.Builder
	if err := p.Save(&written, "page"); err != nil {
		t.Fatal(err)
	}
	if want := "  a       1\n  longer  2  FAIL\n"; written.String() != want {
		t.Errorf("it reads\n%s\nwant\n%s", written.String(), want)
	}
}

func TestColumnsAndTablesFitThePage(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 20) + "end"
	for _, wide := range []int{40, 60, 80, 120} {
		p := &layout.Page{Wide: wide}
		p.Columns("  ", [][]string{
			{"name", "claims", "idea"}, {"a", long, long}, nil, {"one line"}, {"b", "c"},
		})
		p.Table(2, "llrrrl", [][]string{
			{"strategy", "metric", "base", "head", "change", "verdict"},
			{"spin " + long, "acquisitions", "806.123/s", "805.456/s", "-0.1 %", "none found"},
		})
		for line := range strings.Lines(p.String()) {
			if width := layout.TextWidth(strings.TrimSuffix(line, "\n")); width > wide {
				t.Errorf("at %d a line has %d columns: %s", wide, width, line)
			}
		}
		for _, cell := range []string{"806.123/s", "805.456/s", "-0.1 %", "none found", "one line"} {
			if strings.Count(p.String(), cell) != 1 {
				t.Errorf("at %d there is no %q, or several:\n%s", wide, cell, p)
			}
		}
		if got := strings.Count(p.String(), "end"); got != 3+strings.Count(p.String(), "strategy")-1 {
			t.Errorf("at %d the cells end %d times:\n%s", wide, got, p)
		}
	}
}
