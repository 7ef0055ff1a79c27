package command

import (
	"strings"
	"testing"
)

// Scripts that were written for former names of flags, variables, workload options and metrics
// still work, and a misspelt former name is still an error.
func TestFormerNamesStillWork(t *testing.T) {
	show := func(words ...string) string {
		code, stdout, stderr := said(t, append([]string{"--dry-run", "-s", "spin"}, words...)...)
		if code != 0 {
			t.Fatalf("%v: exit code %d: %s", words, code, stderr)
		}
		return stdout
	}
	present := show("--burst", "20ms", "--no-baselines", "--seed", "1")
	if former := show("--gather", "20ms", "--no-floors", "--seed", "1"); former != present {
		t.Errorf("with former flags:\n%s\nwant\n%s", former, present)
	}
	t.Setenv("LOCKBENCH_GATHER", "20ms")
	t.Setenv("LOCKBENCH_NO_FLOORS", "true")
	if former := show("--seed", "1"); !strings.Contains(former, "20ms") || strings.Contains(former, "baselines") != strings.Contains(present, "baselines") {
		t.Errorf("with former variables:\n%s\nwant\n%s", former, present)
	}
	t.Setenv("LOCKBENCH_GATHER", "")
	t.Setenv("LOCKBENCH_NO_FLOORS", "")
	for _, metric := range []string{
		"waits_open", "gave_up", "turns_min", "turns_max", "return_p50", "overtakes", "late_overlaps", "left_behind",
		"stuck_clients", "foreign_traffic", "foreign_cpu", "fault_strikes",
	} {
		show("--threshold", metric+"<1000000")
	}
	if code, _, stderr := said(t, "--dry-run", "--gathr", "20ms"); code != 104 || !strings.Contains(stderr, "--gathr") {
		t.Errorf("--gathr: exit code %d: %s", code, stderr)
	}
}
