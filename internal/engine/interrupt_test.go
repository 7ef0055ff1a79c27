package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// interrupting is a Target that has the run interrupted just as it looks.
type interrupting struct {
	store.Target
	measuring atomic.Bool
	interrupt func()
}

func (i *interrupting) Read(ctx context.Context) (results.Reading, error) {
	if i.measuring.Load() {
		i.interrupt()
	}
	return i.Target.Read(ctx)
}

// What an interrupt cuts short is no error.
func TestAnInterruptedLookIsNoError(t *testing.T) {
	j := job(t, redistest.Start(t), "spin", func(w *workloads.Spec) { w.Duration = workloads.Duration(time.Minute) })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	target := &interrupting{Target: j.Target, interrupt: cancel}
	j.Target = target
	j.Phase = func(phase string) { target.measuring.Store(phase == "measure") }
	run, err := j.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !run.Partial || len(run.Errors) > 0 {
		t.Errorf("partial %v, errors %v", run.Partial, run.Errors)
	}
}
