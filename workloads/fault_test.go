package workloads_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/selfcheck"
	"github.com/lockbench/lockbench/internal/servers"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// An engine that takes every release for 5 % of its hold too early shortens the
// holds and lengthens handoffs and releases by as much: the books balance, and
// the queue is explained. Only the server's clock can tell.
func TestShortHoldsAreFoundByTheServersClock(t *testing.T) {
	const tellApart = 2.5 // percent, half of the fault
	for name, test := range map[string]struct {
		change func(workloads.Job) workloads.Job
		short  bool
	}{
		"holds 5 % short": {func(job workloads.Job) workloads.Job {
			return job.Misreading(func(granted, released int64) int64 { return released - (released-granted)/20 })
		}, true},
		"honest holds": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := selfcheck.Run(t.Context(), selfcheck.Options{
				Redis: servers.Options{Address: servers.Quickest()}, Only: []string{"queueing"}, Change: test.change,
				Effort: selfcheck.Effort{Queues: []string{"local"}, Customers: 400, Loads: []float64{0.7}, Window: time.Second},
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range found.Checks[0].Measured {
				if !strings.Contains(m.Name, "TIME") {
					continue
				}
				t.Logf("%s: %.2f %%", m.Name, *m.Value)
				if short := *m.Value < -tellApart; short != test.short {
					t.Errorf("%s: %.2f %%", m.Name, *m.Value)
				}
				if verdict := found.Checks[0].Verdict; test.short && verdict != results.Fail {
					t.Errorf("the check's verdict is %s", verdict)
				}
				return
			}
			t.Errorf("holds are not compared with the server's TIME: %+v", found.Checks[0])
		})
	}
}
