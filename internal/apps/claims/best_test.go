package claims

import (
	"testing"

	"github.com/lockbench/lockbench/results"
)

// planted are rounds of strategies with these speeds and longest waits.
func planted(speeds map[string][]float64, waits map[string][]results.Bound) *measured {
	m := &measured{report: &results.Report{}}
	for name, rounds := range speeds {
		for i, speed := range rounds {
			run := results.Run{Strategy: name, Round: i + 1}
			run.Speed.PerSecond = speed
			if bounds := waits[name]; bounds != nil {
				run.Waiting.PerClient.P99 = &bounds[i]
			}
			m.report.Runs = append(m.report.Runs, run)
		}
	}
	return m
}

func operandOf(t *testing.T, text string) operand {
	t.Helper()
	e, err := parseExpression(text)
	if err != nil {
		t.Fatal(err)
	}
	return e.operands[0]
}

// The best is that of the round, by the metric's direction.
func TestTheBestOfARound(t *testing.T) {
	t.Parallel()
	exactly := func(ns int64) results.Bound { return results.Bound{NS: ns} }
	least := func(ns int64) results.Bound { return results.Bound{NS: ns, AtLeast: true} }
	m := planted(
		map[string][]float64{"mine": {9, 9, 9, 9}, "a": {1, 4, 2, 3}, "b": {3, 2, 2, 8}},
		map[string][]results.Bound{"a": {exactly(5), exactly(5), least(3), exactly(7)}, "b": {exactly(6), exactly(2), exactly(4), exactly(1)}},
	)
	for i := range m.report.Runs {
		if r := &m.report.Runs[i]; r.Strategy == "b" && r.Round == 4 {
			r.Invalid = []string{"generator saturated"}
		}
	}
	for text, want := range map[string][]struct {
		value float64
		whose string
	}{
		"best(x[a, b].acq_per_s)": {{3, "b"}, {4, "a"}, {2, "a"}},
		// Who waited for at least 3 may have been no worse than that.
		"best(x[a, b].wait_per_client_p99)": {{5, "a"}, {2, "b"}, {3, "a"}},
	} {
		o := operandOf(t, text)
		for i, w := range want {
			if f, whose := o.look(m, i+1); f == nil || f.Value != w.value || f.AtLeast || whose != w.whose {
				t.Errorf("%s in round %d is %v of %q, want %v of %s", text, i+1, f, whose, w.value, w.whose)
			}
		}
		for round, why := range map[int]string{4: "in which one cannot be trusted", 5: "that was not"} {
			if f, whose := o.look(m, round); f != nil || whose != "" {
				t.Errorf("%s of a round %s is %v of %q", text, why, f, whose)
			}
		}
	}
}
