// Package virtual runs the engine in virtual time, for tests. Only holds and the gaps between arrivals take time, so
// the expected result is known exactly. It needs no Redis.
package virtual

import (
	"testing"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies/baselines"
	"github.com/lockbench/lockbench/workloads"
)

// Run measures the strategy local in virtual time. The workload is the default one with 100 clients, one instance and
// no warm-up, as modified by change. Call Run in a bubble of testing/synctest. The observer may be nil.
func Run(t *testing.T, observer engine.Observer, change func(*workloads.Spec)) *results.Run {
	t.Helper()
	v, err := baselines.Local().Variant(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := workloads.Default()
	w.Clients, w.Instances, w.Warmup = 100, 1, 0
	change(&w)
	run, err := engine.Job{
		Strategy: v, Workload: w, Session: "virtual", Round: 1, Observer: observer,
		VirtualTime: true,
	}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// Dist parses a distribution, such as exp:1ms.
func Dist(t *testing.T, text string) workloads.Dist {
	t.Helper()
	var d workloads.Dist
	if err := d.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return d
}
