package virtual_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/virtual"
	"github.com/lockbench/lockbench/workloads"
)

// A first-come-first-served lock starves nobody, however short the window is: five
// hundred clients that hold for 20 ms each have had 250 acquisitions in 5 s.
func TestAShortWindowOfAQueueStarvesNobody(t *testing.T) {
	for _, test := range []struct {
		window time.Duration
		label  string // "" is none, and nobody starves
	}{
		{
			5 * time.Second,
			"window too short for one fair round: 250 acquisitions for 500 clients, --duration 22s is not",
		},
		{10 * time.Second, ""},
		{22 * time.Second, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			run := virtual.Run(t, nil, func(w *workloads.Spec) {
				w.Clients, w.Hold, w.Duration = 500, workloads.Fixed(20*time.Millisecond),
					workloads.Duration(test.window)
			})
			got := slices.DeleteFunc(run.Labels,
				func(label string) bool { return !strings.Contains(label, "fair round") })
			if strings.Join(got, "; ") != test.label { // others are of the machine
				t.Errorf("%v: labels %q, want %q", test.window, got, test.label)
			}
			if starved := run.Fairness.Starved; test.label == "" && (starved == nil || *starved != 0) ||
				test.label != "" && starved != nil {
				t.Errorf("%v: starved %v", test.window, starved)
			}
		})
	}
}
