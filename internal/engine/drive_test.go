package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// scripted is a driver that reports the cycles that the function cycles returns. If fails is not nil, Drive then
// returns this error.
type scripted struct {
	cycles func(engine.Assignment) []engine.Cycle
	fails  error
}

func (scripted) Acquire(context.Context, string) (strategies.Lease, error) {
	return nil, errors.ErrUnsupported
}
func (scripted) Close() error  { return nil }
func (scripted) CPU() *float64 { return new(1.5) }

func (s scripted) Drive(ctx context.Context, a engine.Assignment, report func([]engine.Cycle) error) error {
	if err := report(s.cycles(a)); err != nil || s.fails != nil {
		return errors.Join(err, s.fails)
	}
	select {
	case <-time.After(time.Until(a.Clock.Time(a.Stop))):
	case <-a.Stopped:
	}
	return ctx.Err()
}

func driven(t *testing.T, s scripted, window time.Duration) (*results.Run, error) {
	t.Helper()
	return drivenWithin(t, s, window, nil)
}

// drivenWithin runs a job with two clients of the driver s. limit is the timeout of each wait; nil means none.
func drivenWithin(t *testing.T, s scripted, window time.Duration, limit *workloads.Duration) (*results.Run, error) {
	t.Helper()
	job := s.job(window)
	job.Workload.Timeout = limit
	return job.Run(t.Context())
}

func (s scripted) job(window time.Duration) engine.Job {
	v := strategies.Unlisted(strategies.Info{
		Name: "scripted", Capacity: 1, Driver: true, Claims: strategies.Claims{Exclusion: true, Fencing: true},
	}, func(strategies.ConfigOf[any]) (scripted, error) { return s, nil })
	w := workloads.Default()
	w.Clients, w.Instances, w.Warmup, w.Duration = 2, 1, 0, workloads.Duration(window)
	w.TTL = workloads.Duration(100 * time.Millisecond)
	return engine.Job{Strategy: v, Workload: w, Session: "abcdef12"}
}

// During the run, Watch shows a driver's cycles in order. It shows a cycle only after every client has reported what it
// did up to the end of that cycle.
func TestWatchShowsRunningDrivers(t *testing.T) {
	t.Parallel()
	for name, reportsItsWait := range map[string]bool{"each client has reported": true, "a client has not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := scripted{cycles: func(a engine.Assignment) []engine.Cycle {
				all := []engine.Cycle{
					lease(a, 0, 0, 200, 400), lease(a, 0, 500, 520, 600), lease(a, 1, 100, 700, 900),
				}
				for client := range 2 {
					wait := engine.Cycle{
						Client: client, Asked: a.Start + 950e6, Done: a.Start + 60e9, Error: engine.CycleStopped,
					}
					if client == 0 || reportsItsWait {
						all = append(all, wait)
					}
				}
				return all
			}}.job(2 * time.Second)
			var most int64
			job.Watch = func(run results.Run, _ []results.Wait) { most = max(most, run.Speed.Acquisitions) }
			run, err := job.Run(t.Context())
			if err != nil || run.Speed.Acquisitions != 3 {
				t.Fatalf("%+v, %v", run, err)
			}
			if seen := most == 3; seen != reportsItsWait {
				t.Errorf("%d acquisitions were seen while it ran", most)
			}
		})
	}
}

// lease returns a cycle with a lease. asked, granted and released are in milliseconds after the start.
func lease(a engine.Assignment, client int, asked, granted, released float64) engine.Cycle {
	at := func(ms float64) int64 { return a.Start + int64(math.Round(ms*1e6)) }
	return engine.Cycle{
		Client: client, Asked: at(asked), Granted: at(granted), Released: at(released), Done: at(released) + 10,
	}
}

// valid sets the end of the validity of c's lease to `until` milliseconds after the start, and returns c.
func valid(a engine.Assignment, c engine.Cycle, until float64) engine.Cycle {
	c.Until = new(a.Start + int64(math.Round(until*1e6)))
	return c
}

// A driver reports cycles in another order than they happened. The figures must be those of the order in which they
// happened.
func TestDriverCyclesAreRecordedInOrder(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cycles func(engine.Assignment) []engine.Cycle
		as     func(*results.Run) bool
	}{
		"a lease that ends when another begins does not overlap it": {
			func(a engine.Assignment) []engine.Cycle {
				return []engine.Cycle{lease(a, 1, 1, 5, 9), lease(a, 0, 0, 1, 5), lease(a, 0, 6, 9, 12)}
			},
			func(r *results.Run) bool {
				return r.Safety.Overlaps == 0 && r.Speed.Acquisitions == 3 && r.Speed.Handoff.Count == 2 &&
					r.Speed.Handoff.Max.NS == 0
			},
		},
		"an overlap of a nanosecond is one": {
			func(a engine.Assignment) []engine.Cycle {
				return []engine.Cycle{lease(a, 1, 1, 5-1e-6, 9), lease(a, 0, 0, 1, 5)}
			},
			func(r *results.Run) bool { return r.Safety.Overlaps == 1 && r.Safety.OverlapNS == 1 },
		},
		"leases of no length do not overlap, unless they are within another": {
			func(a engine.Assignment) []engine.Cycle {
				return []engine.Cycle{
					lease(a, 0, 1, 5, 5), lease(a, 1, 2, 5, 5), lease(a, 0, 6, 7, 9), lease(a, 1, 6, 8, 8),
				}
			},
			func(r *results.Run) bool { return r.Safety.Overlaps == 1 },
		},
		"a lease that may have run out a TTL after the call of acquire": {
			func(a engine.Assignment) []engine.Cycle {
				return []engine.Cycle{lease(a, 0, 0, 40, 120), lease(a, 1, 50, 101, 110)}
			},
			func(r *results.Run) bool {
				return r.Safety.Overlaps == 0 && r.Safety.ExpiredOverlaps == 1 && len(r.Safety.Broken) == 0
			},
		},
		"a lease that cannot have run out by then": {
			func(a engine.Assignment) []engine.Cycle {
				return []engine.Cycle{lease(a, 0, 0, 40, 120), lease(a, 1, 50, 99, 110)}
			},
			func(r *results.Run) bool { return r.Safety.Overlaps == 1 && len(r.Safety.Broken) == 1 },
		},
		"a lease that is valid for longer, by its library's word": {
			func(a engine.Assignment) []engine.Cycle {
				return []engine.Cycle{valid(a, lease(a, 0, 0, 40, 120), 130), lease(a, 1, 50, 101, 110)}
			},
			func(r *results.Run) bool { return r.Safety.Overlaps == 1 && len(r.Safety.Broken) == 1 },
		},
		"a lease that is valid for less, and has a token": {
			func(a engine.Assignment) []engine.Cycle {
				first, second := valid(a, lease(a, 0, 0, 10, 50), 20), lease(a, 1, 0, 30, 40)
				first.Token, second.Token = new(int64(1)), new(int64(2))
				return []engine.Cycle{first, second}
			},
			func(r *results.Run) bool {
				return r.Safety.ExpiredOverlaps == 1 && r.Safety.FencedLeases == 2 && len(r.Safety.Broken) == 0
			},
		},
		"tokens that go back": {
			func(a engine.Assignment) []engine.Cycle {
				first, second := lease(a, 0, 0, 1, 2), lease(a, 1, 0, 3, 4)
				first.Token, second.Token = new(int64(7)), new(int64(6))
				return []engine.Cycle{second, first}
			},
			func(r *results.Run) bool { return r.Safety.FencingRegression == 1 && len(r.Safety.Broken) == 1 },
		},
		"who asked later came first": {
			func(a engine.Assignment) []engine.Cycle {
				return []engine.Cycle{lease(a, 0, 1, 2, 3), lease(a, 1, 0, 4, 5)}
			},
			func(r *results.Run) bool { return *r.Fairness.Overtaken == 50 && *r.Fairness.LargestBypass == 1 },
		},
		"leases after the window pass over no waiter": {
			func(a engine.Assignment) []engine.Cycle {
				return []engine.Cycle{
					{Client: 0, Asked: a.Start + 1e6, Done: a.Stop, Error: engine.CycleStopped},
					lease(a, 1, 2, 10, 11), lease(a, 1, 20, 60, 61), lease(a, 1, 62, 70, 71), lease(a, 1, 72, 80, 81),
				}
			},
			func(r *results.Run) bool { return r.Speed.Acquisitions == 1 && *r.Fairness.LargestBypass == 1 },
		},
		"a waiter that is served after the window was passed over in it": {
			func(a engine.Assignment) []engine.Cycle {
				return []engine.Cycle{
					lease(a, 0, 1, 90, 91), lease(a, 1, 2, 10, 11), lease(a, 1, 12, 20, 21), lease(a, 1, 22, 60, 61),
				}
			},
			func(r *results.Run) bool { return r.Speed.Acquisitions == 2 && *r.Fairness.LargestBypass == 2 },
		},
		"waits without a lease": {
			func(a engine.Assignment) []engine.Cycle {
				lost := lease(a, 0, 0, 1, 2)
				lost.Error = engine.CycleNotHeld
				return []engine.Cycle{
					lost,
					{Client: 0, Asked: lost.Done, Done: a.Stop, Error: engine.CycleStopped},
					{Client: 1, Asked: a.Start, Done: a.Start + 1e6, Error: "no such host"},
					{Client: 1, Asked: a.Start + 2e6, Done: a.Stop + 5, Error: engine.CycleStopped},
				}
			},
			func(r *results.Run) bool {
				return r.Safety.LostLeases == 1 && r.Waiting.Open == 2 && len(r.Errors) == 1 &&
					r.Errors[0].Error == "no such host"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run, err := driven(t, scripted{cycles: test.cycles}, 50*time.Millisecond)
			if err != nil || !test.as(run) || !run.TimeAccounting.Balanced {
				t.Errorf("%v, %+v", err, run)
			}
			if used := run.Generator.DriverCPUSeconds; used == nil || *used != 0 {
				t.Errorf("the driver used %v in the window", used)
			}
		})
	}
}

// One wait ends with a lease and another without one, both after the timeout. If they end more than 500 ms late, the
// run must get a label that counts both.
func TestWaitsBeyondTimeoutAreLabelled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		late float64 // end, in ms, of a wait that began at the start
		want string
	}{
		"a little late": {140, ""},
		"ignored":       {620, "2 waits lasted over 500ms longer than --timeout 50ms; the longest ended after 620ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run, err := drivenWithin(t, scripted{cycles: func(a engine.Assignment) []engine.Cycle {
				served := lease(a, 0, 0, test.late-5, test.late)
				gaveUp := engine.Cycle{
					Client: 1, Asked: a.Start, Done: a.Start + int64(test.late*1e6), Error: engine.CycleTimedOut,
				}
				return []engine.Cycle{served, gaveUp}
			}}, 700*time.Millisecond, new(workloads.Duration(50*time.Millisecond)))
			if err != nil {
				t.Fatal(err)
			}
			said := slices.DeleteFunc(run.Labels.Texts(), func(l string) bool { return !strings.Contains(l, "--timeout") })
			if got := strings.Join(said, "; "); got != test.want {
				t.Errorf("it says %q, want %q", got, test.want)
			}
		})
	}
}

func TestDriverCycleErrors(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	late := fmt.Errorf("wait: %w", context.DeadlineExceeded)
	for _, test := range []struct {
		ctx     context.Context
		err     error
		limited bool
		want    engine.CycleError
	}{
		{t.Context(), late, true, engine.CycleTimedOut},
		{t.Context(), late, false, "wait: context deadline exceeded"}, // a timeout that was not requested
		{t.Context(), strategies.ErrHeld, false, engine.CycleTimedOut},
		{t.Context(), strategies.ErrNotHeld, true, engine.CycleNotHeld},
		{ended, late, true, engine.CycleStopped},
	} {
		if got := engine.ErrorOf(test.ctx, test.err, test.limited); got != test.want {
			t.Errorf("%v, limited: %v: %q, want %q", test.err, test.limited, got, test.want)
		}
	}
}

func TestUnreportedClientInvalidatesRun(t *testing.T) {
	t.Parallel()
	run, err := driven(t, scripted{cycles: func(a engine.Assignment) []engine.Cycle {
		return []engine.Cycle{lease(a, 0, 0, 0, 1400)}
	}}, 1300*time.Millisecond)
	want := "its driver did not report what 1 of its clients did at the end of the window"
	if err != nil || !slices.Contains(run.Invalid.Texts(), want) {
		t.Errorf("%v, %+v", err, run.Invalid)
	}
}

func TestFailedDriverEndsRun(t *testing.T) {
	t.Parallel()
	run, err := driven(t, scripted{
		cycles: func(a engine.Assignment) []engine.Cycle { return []engine.Cycle{lease(a, 0, 0, 0, 0)} },
		fails:  errors.New("it is broken"),
	}, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "instance 1 of scripted: it is broken") || run.Valid() ||
		!run.Partial {
		t.Errorf("%v, %+v", err, run)
	}
}
