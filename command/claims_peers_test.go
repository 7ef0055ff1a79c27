package command_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/command"
)

// The claims of make peers can be carried out, every line of them.
func TestThePeersClaims(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../internal/apps/claims/data/peers/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%q, %v", files, err)
	}
	var stdout, stderr strings.Builder
	args := slices.Concat([]string{"claims", "--dry-run"}, files)
	if code := command.Main(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != command.ExitOK || stderr.Len() > 0 {
		t.Fatalf("it ends with %d: %s", code, &stderr)
	}
	if lines := strings.Count(stdout.String(), "--runs 11 --no-baselines"); lines != 2*len(files) {
		t.Errorf("%d files have %d runs of 11 rounds", len(files), lines)
	}
}
