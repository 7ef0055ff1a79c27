package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// A wait that a driver cannot end may acquire the lock after the run. No client then releases the lock. A label reports
// its key, which does not count as a leftover of the lock.
func TestKeysOfUncancellableWaits(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	for name, test := range map[string]struct {
		waits bool
		left  []string
		label string
	}{
		"every wait has ended": {false, []string{"the lock's", "another"}, ""},
		"a wait goes on":       {true, []string{"another"}, "waits that the driver could not end left 1 key"},
	} {
		t.Run(name, func(t *testing.T) {
			names := map[string]string{}
			s := scripted{cycles: func(a engine.Assignment) []engine.Cycle {
				key := engine.Prefix + a.Keys[0]
				names["key "+key], names["key "+key+":more"] = "the lock's", "another"
				for _, left := range []string{key, key + ":more"} {
					if err := client.Set(t.Context(), left, "a client", time.Minute).Err(); err != nil {
						t.Error(err)
					}
				}
				cycles := []engine.Cycle{lease(a, 0, 0, 1, 2)}
				if test.waits {
					cycles = append(cycles,
						engine.Cycle{Client: 1, Asked: a.Start, Done: a.Stop, Error: engine.CycleStopped})
				}
				return cycles
			}}
			j := job(t, server, "spin", func(w *workloads.Spec) {
				w.Clients, w.Instances, w.Warmup, w.Duration = 2, 1, 0, workloads.Duration(50*time.Millisecond)
			})
			j.Strategy = strategies.Unlisted(strategies.Info{
				Name: "scripted", Capacity: 1, Nodes: 1, Driver: true, Keys: []string{"{key}"},
				Claims: strategies.Claims{Exclusion: true},
			}, func(strategies.ConfigOf[any]) (scripted, error) { return s, nil })
			run, err := j.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, name := range run.Safety.Leftovers {
				left = append(left, names[name])
			}
			slices.Sort(left)
			slices.Sort(test.left)
			if !slices.Equal(left, test.left) || *run.Safety.LeftoverCount != int64(len(test.left)) {
				t.Errorf("left %q, want %q", run.Safety.Leftovers, test.left)
			}
			if said := run.Labels.String(); test.label != "" && !strings.Contains(said, test.label) {
				t.Errorf("it says %q, want %q", said, test.label)
			}
		})
	}
}
