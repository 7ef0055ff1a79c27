package command

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/apps/advise"
	"github.com/lockbench/lockbench/internal/driver"
	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/workloads"
)

func TestAdviceExitCodes(t *testing.T) {
	t.Parallel()
	choice := &advise.Choice{Name: "spin"}
	for _, test := range []struct {
		advice advise.Document
		code   int
	}{
		{advise.Document{Choice: choice}, ExitOK},
		{advise.Document{}, ExitInvalid},
		{advise.Document{Undecided: &advise.Undecided{Between: []string{"spin", "handoff"}}}, ExitInvalid},
		{advise.Document{Choice: choice, Broken: []string{"spin"}}, ExitSafety},
		{advise.Document{Interrupted: true}, ExitInterrupted},
	} {
		code := ExitOK
		if err := advised(&test.advice, nil); err != nil {
			code = exitCode(t.Context(), err)
		}
		if code != test.code {
			t.Errorf("%+v ends with %d, want %d", test.advice, code, test.code)
		}
	}
}

// If a driver of the requested language cannot be started, advise must omit it and report the reason and the next step.
func TestMissingDriversAreReported(t *testing.T) {
	t.Setenv(driver.PathVariable, "")
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	found, absent := driversFor(t.Context(), "node", advise.Efficiency)
	if len(found) != 0 || len(absent) != 2 {
		t.Fatalf("found %d, absent %+v", len(found), absent)
	}
	for i, name := range []string{"exec:redis-semaphore", "exec:redlock"} {
		if a := absent[i]; a.Strategy != name || a.Why.String() != "not installed; run: lockbench drivers install node" {
			t.Errorf("absent is %+v", a)
		}
	}
	q := advise.Question{For: advise.Efficiency, Workload: workloads.Default(), Absent: absent}
	p := &layout.Page{Wide: 200}
	q.LayPlan(p, "", "")
	if !strings.Contains(p.String(), "exec:redlock") || !strings.Contains(p.String(), "drivers install node") {
		t.Errorf("the plan is\n%s", p)
	}
}
