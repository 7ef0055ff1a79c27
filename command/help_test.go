package command

import (
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/internal/layout"
)

// TestHelpFits checks that no line of any command's help is wider than the terminal, if the terminal has at least 60
// columns. It skips completion, whose texts come from cobra and are wider.
func TestHelpFits(t *testing.T) {
	for _, wide := range []int{60, 66, 80, 120} {
		t.Setenv("COLUMNS", strconv.Itoa(wide))
		shown := 0
		var show func(*cobra.Command)
		show = func(cmd *cobra.Command) {
			for _, under := range cmd.Commands() {
				show(under)
			}
			path := strings.Fields(cmd.CommandPath())[1:]
			if wide < 120 && len(path) > 0 && path[0] == "completion" {
				return
			}
			shown++
			code, text, _ := said(t, append(path, "--help")...)
			if code != ExitOK || !strings.Contains(text, "\nUsage:\n  lockbench") {
				t.Errorf("%q --help: exit code %d, printed %s", path, code, text)
			}
			for line := range strings.Lines(text) {
				if got := layout.TextWidth(strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "        ")); got > wide {
					t.Errorf("%q --help has %d columns of %d: %s", path, got, wide, line)
				}
			}
		}
		show(Root())
		if shown < 15 {
			t.Errorf("only %d commands", shown)
		}
	}
}
