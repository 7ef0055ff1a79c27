package command

import (
	"os/exec"
	"strings"
	"testing"
)

// The CI action must fail a job on a regression and on a broken guarantee. It must fail a job on an undecided verdict
// only if the action's input strict is true.
func TestActionFailsOnRegression(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		code, strict string
		want         string // result of the job
		says         string
	}{
		{"0", "false", "0", ""},
		{"110", "false", "110", "::error::lockbench: the head is worse"},
		{"111", "false", "111", "::error::lockbench: the head broke a guarantee"},
		{"112", "false", "0", "::warning::lockbench: undecided"},
		{"112", "", "0", "::warning::lockbench: undecided"},
		{"112", "true", "112", "::error::lockbench: undecided"},
		{"1", "false", "1", "::error::lockbench ab ended with 1"},
	} {
		script := "bash ../.github/actions/lockbench-ab/verdict.sh " + test.code + " '" + test.strict + "'; echo $?"
		said, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(said)), "\n")
		if err != nil || lines[len(lines)-1] != test.want || !strings.HasPrefix(string(said), test.says) {
			t.Errorf("%+v: %v, it says %q", test, err, said)
		}
	}
}
