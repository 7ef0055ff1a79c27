package engine_test

import (
	"os/exec"
	"strings"
	"testing"
)

// Measuring must not wait for, nor be able to call, what shows its figures.
func TestNoRendererIsCompiled(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for path := range strings.Lines(string(out)) {
		path = strings.TrimSpace(path)
		if strings.Contains(path, "/lockbench/results/") || strings.Contains(path, "tablewriter") || strings.Contains(path, "gonum.org") {
			t.Errorf("the engine compiles %s", path)
		}
	}
}
