package results

import (
	"strings"
	"testing"
)

func TestLabelsThatDifferInTheirFiguresAreSaidOnce(t *testing.T) {
	var runs []Run
	for _, labels := range [][]string{{"foreign CPU 23%", "redis-bound"}, {"foreign CPU 9.5%"}, {"foreign CPU 41%", "steal 3.1%"}} {
		runs = append(runs, Run{Labels: labels})
	}
	all := []summary{{Strategy: Strategy{Name: "a"}, runs: runs[:2]}, {Strategy: Strategy{Name: "b"}, runs: runs[2:]}}
	p := &page{}
	p.labelNotes(all)
	got := strings.Split(strings.TrimSpace(p.String()), "\n")
	for i, want := range []string{"a, b: foreign CPU 9.5–41% (", "a: redis-bound (", "b: steal 3.1% ("} {
		if i >= len(got) || !strings.Contains(got[i], want) {
			t.Fatalf("line %d is not %q:\n%s", i, want, p)
		}
	}
}
