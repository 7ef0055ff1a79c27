package command_test

import (
	"context"
	"testing"

	"github.com/lockbench/lockbench/internal/apps/check"
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
	d, err := check.Run(ctx, check.Options{
		Strategy: variant(t, baselines.Local()),
		Progress: func(name string) {
			if name == "cancelled at any moment" {
				interrupt()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !d.Interrupted || len(d.With(check.NotRun)) == 0 || len(d.With(locktest.Passed)) == 0 {
		t.Errorf("interrupted %v, not run %q, passed %q", d.Interrupted, d.With(check.NotRun), d.With(locktest.Passed))
	}
	for i, c := range locktest.Checks() {
		if d.Checks[i].Check != c.Name || d.Checks[i].Outcome == "" || d.Checks[i].Outcome == locktest.Broken {
			t.Errorf("%+v, want %s", d.Checks[i], c.Name)
		}
	}
}

func TestServersFailOver(t *testing.T) {
	t.Parallel()
	of := check.Options{Strategy: variant(t, polled.Strategies()[0]), Only: []string{"failover"}}
	d, err := check.Run(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Checks) != 1 || d.Checks[0].Outcome != locktest.Passed {
		t.Errorf("%+v", d.Checks)
	}
}
