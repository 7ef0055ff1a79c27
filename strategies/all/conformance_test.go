package all_test

import (
	"os"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// TestConformanceTable runs the suite on the locks that judged returns for the list in LOCKBENCH_CONFORMANCE_OF, and
// writes the results to the file LOCKBENCH_CONFORMANCE. It is skipped if neither variable is set.
func TestConformanceTable(t *testing.T) {
	file, list := os.Getenv("LOCKBENCH_CONFORMANCE"), os.Getenv("LOCKBENCH_CONFORMANCE_OF")
	if file == "" && list == "" {
		t.Skip("slow: make conformance runs it")
	}
	var columns []*column
	for _, lock := range judged(t, list) {
		columns = append(columns, &column{lock, map[string]locktest.Result{}})
	}
	on := conditions(t)
	for _, c := range columns {
		t.Run(c.lock.Name(), func(t *testing.T) {
			c.judge(t)
			if file == "" {
				return
			}
			if err := os.WriteFile(file, []byte(page(columns, on)), 0o644); err != nil {
				t.Error(err)
			}
		})
	}
}

// judged returns the variants in list. If list is empty, it returns every lock on Redis that claims exclusion, with its
// default options, and also handoff with linger=0s and semaphore with expirable=true.
func judged(t *testing.T, list string) []strategies.Variant {
	t.Helper()
	if list == "" {
		var names []string
		for _, s := range strategies.All() {
			if s.Info.Claims.Exclusion && s.Info.Store == "" {
				names = append(names, s.Info.Name)
			}
		}
		list = strings.Join(append(names, "handoff:linger=0s", "semaphore:expirable=true"), ",")
	}
	variants, err := strategies.ParseVariants(list)
	if err != nil {
		t.Fatal(err)
	}
	return variants
}

// column contains the results of the suite for one lock.
type column struct {
	lock     strategies.Variant
	verdicts map[string]locktest.Result // by check, of those that were reached
}

// judge runs every check that applies to the lock. Each check runs on separate servers, which stop when the check ends.
func (c *column) judge(t *testing.T) {
	for _, check := range locktest.Checks() {
		if check.Inapplicable(c.lock.Info()) != "" {
			continue
		}
		t.Run(check.Name, func(t *testing.T) {
			c.verdicts[check.Name] = check.Judge(t.Context(), trial.Everything(t, c.lock), c.lock.Info())
			t.Log(c.verdicts[check.Name])
		})
	}
}
