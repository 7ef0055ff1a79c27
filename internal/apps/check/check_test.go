package check

import (
	"context"
	"testing"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/baselines"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/polled"
)

func variant(t *testing.T, s strategies.Strategy) strategies.Variant {
	t.Helper()
	v, err := s.Variant(nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// What was not run is in the document, and so is what was found before.
func TestAnInterruptedRunSaysWhatItDidNotRun(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	d, err := Run(ctx, Options{
		Strategy: variant(t, baselines.Local()),
		Progress: func(check string) {
			if check == "cancelled at any moment" {
				interrupt()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !d.Interrupted || len(d.With(NotRun)) == 0 || len(d.With(locktest.Passed)) == 0 {
		t.Errorf("interrupted %v, not run %q, passed %q", d.Interrupted, d.With(NotRun), d.With(locktest.Passed))
	}
	for i, check := range locktest.Checks() {
		if d.Checks[i].Check != check.Name || d.Checks[i].Outcome == "" || d.Checks[i].Outcome == locktest.Broken {
			t.Errorf("%+v, want %s", d.Checks[i], check.Name)
		}
	}
}

func TestServersFailOver(t *testing.T) {
	t.Parallel()
	d, err := Run(t.Context(), Options{Strategy: variant(t, polled.Strategies()[0]), Only: []string{"failover"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Checks) != 1 || d.Checks[0].Outcome != locktest.Passed {
		t.Errorf("%+v", d.Checks)
	}
}
