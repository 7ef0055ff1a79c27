package all_test

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// column is what the suite found out about one lock.
type column struct {
	name     string
	info     strategies.Info
	verdicts map[string]locktest.Verdict
}

// TestConformanceTable runs the suite on every strategy and peer, or on those that
// LOCKBENCH_CONFORMANCE_OF lists, and writes a table of checks by locks to the file
// LOCKBENCH_CONFORMANCE.
func TestConformanceTable(t *testing.T) {
	file := os.Getenv("LOCKBENCH_CONFORMANCE")
	if file == "" {
		t.Skip("slow: make conformance runs it")
	}
	var columns []column
	for _, v := range judged(t) {
		t.Run(v.Name(), func(t *testing.T) {
			c := column{name: v.Name(), info: v.Info(), verdicts: map[string]locktest.Verdict{}}
			for _, check := range locktest.Checks() {
				if check.Inapplicable(c.info) != "" {
					continue
				}
				t.Run(check.Name, func(t *testing.T) { // servers of its own, which end with it
					fixture := trial.Everything(t, trial.Fixture(t, v), max(c.info.Nodes, 1))
					c.verdicts[check.Name] = check.Judge(t.Context(), fixture, c.info)
				})
			}
			columns = append(columns, c)
			if err := os.WriteFile(file, []byte(page(columns)), 0o644); err != nil {
				t.Error(err)
			}
		})
	}
}

// judged are the locks with their defaults, ours in their other forms too.
func judged(t *testing.T) []strategies.Variant {
	list := os.Getenv("LOCKBENCH_CONFORMANCE_OF")
	if list == "" {
		var names []string
		for _, s := range strategies.All() {
			if s.Info.Claims.Exclusion {
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

// marks are the cells of the table.
var marks = map[locktest.Outcome]string{
	locktest.Passed: "✓", locktest.Broken: "✗", locktest.Admitted: "!", locktest.NotTried: "–", locktest.NotJudged: "?",
}

// page is the document.
func page(columns []column) string {
	var b strings.Builder
	fmt.Fprint(&b, `# Conformance

Written by `+"`make conformance`"+`: every check of the suite [strategies/locktest](../strategies/locktest) on every lock here, with stock options, on servers of its own.

✓ the promise was kept; ✗ it was broken; ! it was broken, and the lock's Info says so; – it could not be tried; ? no verdict; empty: the lock does not claim it, or has no such thing. How often one run of the suite finds a fault: [DETECTION.md](DETECTION.md).

`)
	if versions := versionsOf("github.com/redis/go-redis/v9", "github.com/bsm/redislock", "github.com/go-redsync/redsync/v4", "github.com/redis/rueidis"); len(versions) > 0 {
		fmt.Fprintf(&b, "Versions: %s.\n\n", strings.Join(versions, ", "))
	}
	b.WriteString("| check |")
	for _, c := range columns {
		fmt.Fprintf(&b, " %s |", c.name)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" :-: |", len(columns)) + "\n")
	for _, check := range locktest.Checks() {
		fmt.Fprintf(&b, "| %s |", check.Name)
		for _, c := range columns {
			v, applies := c.verdicts[check.Name]
			if !applies {
				b.WriteString(" |")
				continue
			}
			fmt.Fprintf(&b, " %s |", marks[v.Outcome])
		}
		b.WriteString("\n")
	}
	b.WriteString("\n## What each check proves\n\n")
	for _, check := range locktest.Checks() {
		fmt.Fprintf(&b, "- **%s**: %s\n", check.Name, check.Proves)
	}
	b.WriteString("\n## What was found\n\nTo see one again: `LOCKBENCH_CONFORM=all go test -v -run 'TestConformance/CHECK' ./strategies/LOCK`, with `_` for each space of the check's name.\n")
	for _, c := range columns {
		for _, check := range locktest.Checks() {
			v, applies := c.verdicts[check.Name]
			if applies && !slices.Contains([]locktest.Outcome{locktest.Passed, locktest.NotApplicable}, v.Outcome) {
				fmt.Fprintf(&b, "\n- **%s**, %s: %s", c.name, check.Name, v.Outcome)
				if v.Because != "" {
					fmt.Fprintf(&b, ", because %s", v.Because)
				}
				for _, f := range v.Failures[:min(3, len(v.Failures))] {
					fmt.Fprintf(&b, "\n  - %s: %s", f.Promise, f.Seen)
				}
			}
		}
	}
	b.WriteString("\n")
	return b.String()
}

// versionsOf are those of modules that this program was built with.
func versionsOf(modules ...string) (versions []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, m := range info.Deps {
		if slices.Contains(modules, m.Path) {
			versions = append(versions, m.Path+" "+m.Version)
		}
	}
	return versions
}
