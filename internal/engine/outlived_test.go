package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// Nobody is told that a claim held without a word on the holds that outlived it. Who has
// a watchdog holds as long as he likes.
func TestHoldsThatOutliveTheirLeaseAreSaid(t *testing.T) {
	redis := redistest.Start(t)
	for _, test := range []struct {
		strategy  string
		hold, ttl time.Duration
		said      bool
	}{
		{"spin", 300 * time.Millisecond, 200 * time.Millisecond, true},
		{"spin", 0, time.Minute, false},
		{"pubsub", 300 * time.Millisecond, 200 * time.Millisecond, false},
	} {
		j := job(t, redis, test.strategy, func(w *workloads.Spec) {
			w.Clients, w.Instances, w.Iterations = 1, 1, 2
			w.TTL, w.Hold = workloads.Duration(test.ttl), workloads.Fixed(test.hold)
		})
		run, err := j.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		said := slices.ContainsFunc(run.Labels, func(label string) bool { return strings.HasPrefix(label, results.OutlivedLease) })
		if said != test.said {
			t.Errorf("%s holds for %v under a TTL of %v: labels %q", test.strategy, test.hold, j.Workload.TTL, run.Labels)
		}
	}
}
