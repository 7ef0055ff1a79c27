package engine

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

func TestStagesReachTheirLoads(t *testing.T) {
	s := stages(t, "10s:10 10s:110 10s:110 10s:10")
	for _, test := range []struct {
		at    time.Duration
		n     float64
		want  time.Duration
		never bool
	}{
		{at: -time.Second, n: 10, want: 0},
		{at: 3 * time.Second, n: 10, want: 3 * time.Second},
		{at: 0, n: 60, want: 15 * time.Second},
		{at: 0, n: 110, want: 20 * time.Second},
		{at: 25 * time.Second, n: 110, want: 25 * time.Second},
		{at: 36 * time.Second, n: 60, never: true},
		{at: 0, n: 111, never: true},
		{at: time.Hour, n: 10, want: time.Hour},
	} {
		at, ever := reach(s, test.at, test.n)
		if ever == test.never || ever && (at-test.want).Abs() > time.Microsecond {
			t.Errorf("from %v on %g is reached at %v, %v; want %v", test.at, test.n, at, ever, test.want)
		}
	}
}

func TestStagesKeepClientsOut(t *testing.T) {
	v := lock(t, strategies.Info{Capacity: 1}, 1, wait)
	second := func(target float64) workloads.Stage {
		return workloads.Stage{Duration: workloads.Duration(100 * time.Millisecond), Target: target}
	}
	run := do(t, v, workload(func(w *workloads.Spec) {
		w.Clients, w.Stages, w.Duration = 3, workloads.Stages{second(1), second(2)}, workloads.Duration(200*time.Millisecond)
	}))
	if run.Fairness.AcquisitionsMin != 0 || run.Fairness.AcquisitionsMax == 0 || run.Fairness.Jain != nil || run.Fairness.Starved != nil {
		t.Errorf("the third client was never wanted, the first always: %+v", run.Fairness)
	}
	if !run.TimeAccounting.Balanced {
		t.Errorf("the time accounts do not balance: %+v", run.TimeAccounting)
	}
}
