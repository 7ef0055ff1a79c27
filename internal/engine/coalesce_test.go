package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/workloads"
)

// Clients share an acquisition and the work done under it. If Redis refuses a command of the work, the clients that
// share it must not count as served.
func TestCoalescedClientsShareFailedWork(t *testing.T) {
	server := redistest.Start(t)
	for _, test := range []struct {
		refuse string // a command that the server refuses; it affects only the work, because the lock is not in Redis
		fails  bool
	}{{"-get", true}, {"+get", false}} {
		j := job(t, server, "local", func(w *workloads.Spec) {
			w.Work, w.Coalesce, w.Iterations, w.Hold = workloads.WorkCounter, true, 300, workloads.Fixed(time.Millisecond)
		})
		if err := server.Client(t).Do(t.Context(), "ACL", "SETUSER", "default", test.refuse).Err(); err != nil {
			t.Fatal(err)
		}
		run, err := j.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if run.Safety.Hung > 0 || !run.TimeAccounting.Balanced {
			t.Errorf("%s: %d clients hung, books %+v", test.refuse, run.Safety.Hung, run.TimeAccounting)
		}
		shared := run.Speed.Served - run.Speed.Acquisitions // without the clients that had the leases
		if run.Speed.Acquisitions == 0 || (shared == 0) != test.fails {
			t.Errorf("%s: %d served besides the %d that held the lock", test.refuse, shared, run.Speed.Acquisitions)
		}
		if test.fails && (len(run.Errors) == 0 || !strings.Contains(run.Errors[0].Error, "NOPERM")) {
			t.Errorf("%s: errors %v", test.refuse, run.Errors)
		}
	}
}
