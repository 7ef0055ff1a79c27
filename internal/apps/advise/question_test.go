package advise

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results"
)

func TestUnsafeStrategiesAreNeverMeasured(t *testing.T) {
	t.Parallel()
	for _, purpose := range either {
		q := asked(func(q *Question) { q.For, q.Named = purpose, variants("all") })
		chosen, out := q.candidates()
		for _, v := range chosen {
			if info := v.Info(); info.Caveat != "" || info.Capacity != 1 || !info.Claims.Exclusion || !info.Claims.Recovery {
				t.Errorf("%s is a candidate", v.Name())
			}
		}
		for _, name := range []string{"noop", "local", "atomic", "setnx", "setnx-expire", "semaphore"} {
			if !slices.ContainsFunc(out, func(l results.LeftOut) bool { return l.Strategy == name && l.Why != "" }) {
				t.Errorf("%s is not left out", name)
			}
		}
	}
}

func TestQuestionsNameTheirFaults(t *testing.T) {
	t.Parallel()
	q := asked(func(q *Question) {
		q.For, q.Rounds, q.Workload.Clients, q.Named = "fun", 0, 0, variants("setnx")
	})
	err := q.Validate()
	if err == nil {
		t.Fatal("there are none")
	}
	for _, want := range []string{`--for must be efficiency or correctness, not "fun"`, "--runs must be at least 1", "--clients must be at least 1", "--strategy: setnx: unsafe: ", "there is no lock to compare"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it does not say %q: %v", want, err)
		}
	}
	if err := asked(nil).Validate(); err != nil {
		t.Error(err)
	}
}
