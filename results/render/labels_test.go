package render

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results"
)

func TestLabelsThatDifferInTheirFiguresAreSaidOnce(t *testing.T) {
	var runs []results.Run
	for _, labels := range [][]string{{"foreign CPU 23%", "redis-bound"}, {"foreign CPU 9.5%"}, {"foreign CPU 41%", "steal 3.1%"}} {
		runs = append(runs, results.Run{Labels: labels})
	}
	all := []results.Summary{{Strategy: results.Strategy{Name: "a"}, Runs: runs[:2]}, {Strategy: results.Strategy{Name: "b"}, Runs: runs[2:]}}
	p := &page{}
	p.labelNotes(all)
	got := strings.Split(strings.TrimSpace(p.String()), "\n")
	for i, want := range []string{"a, b: foreign CPU 9.5–41% (", "a: redis-bound (", "b: steal 3.1% ("} {
		if i >= len(got) || !strings.Contains(got[i], want) {
			t.Fatalf("line %d is not %q:\n%s", i, want, p)
		}
	}
}
