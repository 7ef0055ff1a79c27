package all_test

import (
	"os"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// TestConformanceTable runs the suite on every strategy and peer, or on those that
// LOCKBENCH_CONFORMANCE_OF lists, and writes what it found to the file
// LOCKBENCH_CONFORMANCE, if that is set.
func TestConformanceTable(t *testing.T) {
	file, list := os.Getenv("LOCKBENCH_CONFORMANCE"), os.Getenv("LOCKBENCH_CONFORMANCE_OF")
	if file == "" && list == "" {
		t.Skip("slow: make conformance runs it")
	}
	var columns []*column
	for _, lock := range judged(t, list) {
		columns = append(columns, newColumn(lock))
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

// judged are the locks with their defaults, ours in their other forms too.
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

// column is what the suite found out about one lock.
type column struct {
	lock     strategies.Variant
	verdicts map[string]locktest.Verdict // by check, of those that were reached
	program  string                      // judges a peer by one check; "" for other locks
	printed  map[string]string           // by the program, by check, of what was found
}

func newColumn(lock strategies.Variant) *column {
	c := &column{lock: lock, verdicts: map[string]locktest.Verdict{}, printed: map[string]string{}}
	if isPeer(lock.Name()) {
		c.program = program(lock.Name())
	}
	return c
}

// judge runs all checks that apply, each on servers of its own, which end with it. What it
// finds in a peer is to be seen by the peer's program too.
func (c *column) judge(t *testing.T) {
	info := c.lock.Info()
	for _, check := range locktest.Checks() {
		if check.Inapplicable(info) != "" {
			continue
		}
		t.Run(check.Name, func(t *testing.T) {
			fixture := trial.Everything(t, trial.Fixture(t, c.lock), max(info.Nodes, 1))
			v := check.Judge(t.Context(), fixture, info)
			t.Log(v)
			c.verdicts[check.Name] = v
			if c.program != "" && len(v.Failures) > 0 {
				c.printed[check.Name] = run(t, c.program, redistest.Start(t).Addr, check.Name)
			}
		})
	}
}
