package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/selfcheck"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/compare"
)

func TestExitCodes(t *testing.T) {
	fine := results.Run{Strategy: "fine"}
	invalid := results.Run{Strategy: "doubtful", Invalid: []string{"its time accounts do not balance"}}
	broken := results.Run{Strategy: "broken", Safety: results.Safety{Broken: []string{"exclusion"}}}
	both := results.Run{Strategy: "both", Safety: broken.Safety, Invalid: invalid.Invalid}
	report := func(runs ...results.Run) *results.Report { return &results.Report{Runs: runs} }
	stopped := func(r *results.Report) *results.Report { r.Interrupted = true; return r }

	unreachable := fmt.Errorf("%w during spin: it is gone", lockbench.ErrUnreachable)
	config := fmt.Errorf("%w: maxclients", lockbench.ErrConfig)
	dialing := fmt.Errorf("%w: %w", lockbench.ErrUnreachable, context.Canceled)

	for _, test := range []struct {
		name      string
		cancelled bool
		report    *results.Report
		err       error
		want      int
	}{
		{"all well", false, report(fine, fine), nil, ExitOK},
		{"nothing to do", false, report(), nil, ExitOK},
		{"invalid", false, report(fine, invalid), nil, ExitInvalid},
		{"broken", false, report(broken, fine), nil, ExitSafety},
		{"broken before invalid", false, report(invalid, both), nil, ExitSafety},
		{"interrupted before broken", true, stopped(report(broken, invalid)), nil, ExitInterrupted},
		{"interrupted after the last run", true, report(fine), nil, ExitOK},
		{"interrupted while connecting", true, nil, dialing, ExitStopped},
		{
			"interrupted in the floors", true, stopped(report()), fmt.Errorf("floors: %w", context.Canceled),
			ExitInterrupted,
		},
		{"unreachable", false, nil, unreachable, ExitUnreachable},
		{"gone, and broken before", false, report(broken), unreachable, ExitUnreachable},
		{"gone after an interrupt", true, stopped(report(fine)), unreachable, ExitUnreachable},
		{"limits too small", false, report(), config, ExitConfig},
		{"something else", false, report(fine), errors.New("disk full"), ExitFailure},
		{"something else, and invalid", false, report(invalid), errors.New("acquire: WRONGTYPE"), ExitInvalid},
		{"something else, and broken", false, report(both), errors.New("acquire: WRONGTYPE"), ExitSafety},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.cancelled {
				cancel()
			}
			err := outcome(ctx, test.report, test.err)
			if got := exitCode(ctx, err); got != test.want {
				t.Errorf("exit code %d, want %d (%v)", got, test.want, err)
			}
			if test.want != ExitOK && err.Error() == "" {
				t.Error("the user is not told why")
			}
		})
	}
}

func TestASelfcheckEndsWithItsVerdict(t *testing.T) {
	check := func(verdicts ...selfcheck.Verdict) *selfcheck.Document {
		s := &selfcheck.Document{}
		for _, v := range verdicts {
			s.Checks = append(s.Checks, selfcheck.Check{Name: string(v), Verdict: v})
		}
		return s
	}
	stopped := func(s *selfcheck.Document) *selfcheck.Document { s.Interrupted = true; return s }
	for _, test := range []struct {
		name      string
		cancelled bool
		found     *selfcheck.Document
		err       error
		want      int
	}{
		{"all pass", false, check(selfcheck.Pass, selfcheck.Pass), nil, ExitOK},
		{"nothing refuted", false, check(selfcheck.Pass, selfcheck.Inconclusive), nil, ExitOK},
		{"one failed", false, check(selfcheck.Fail, selfcheck.Inconclusive), nil, ExitInvalid},
		{"one failed, and the server stays", false, check(selfcheck.Fail), errors.New("cannot remove it"), ExitInvalid},
		{"the server stays", false, check(selfcheck.Pass), errors.New("cannot remove it"), ExitFailure},
		{"interrupted", true, stopped(check(selfcheck.Fail)), nil, ExitInterrupted},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if test.cancelled {
			cancel()
		}
		if got := exitCode(ctx, proven(ctx, test.found, test.err)); got != test.want {
			t.Errorf("%s: exit code %d, want %d", test.name, got, test.want)
		}
		cancel()
	}
}

// A slower head that was recorded in turns with the base is a regression. If it was recorded after
// the base, the machine may have become slower.
func TestOnlyAChangeInTurnsEndsWith110(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		every int // minutes from one session of a side to the next
		after int // minutes from the base's first to the head's first
		want  int
	}{{2, 1, ExitRegression}, {2, -1, ExitRegression}, {1, 100, ExitOK}, {1, -100, ExitOK}} {
		var sides [2]compare.Side
		for of := range sides {
			for i := range 6 {
				at := time.Date(2026, 1, 1, 12, i*test.every+of*test.after, 0, 0, time.UTC)
				run := results.Run{Strategy: "spin", Speed: results.Speed{PerSecond: 800 - float64(400*of+i)}}
				report := &results.Report{
					Started: at, Strategies: []results.Strategy{{Name: "spin"}},
					Runs: []results.Run{run},
				}
				sides[of].Reports = append(sides[of].Reports, results.File{Name: fmt.Sprint(of, i), Report: report})
			}
		}
		c, err := compare.Unpaired(sides[0], sides[1], compare.DefaultRules())
		if err != nil {
			t.Fatal(err)
		}
		if got := exitCode(t.Context(), judgement(c)); got != test.want {
			t.Errorf("every %d minutes, the head after %d: exit code %d, want %d: %s",
				test.every, test.after, got, test.want, c.Headline())
		}
	}
}

func TestAllReasonsOfAnInvalidRunAreSaid(t *testing.T) {
	t.Parallel()
	run := results.Run{Strategy: "spin", Invalid: []string{"it had errors", "it stood still"}}
	err := judge(&results.Report{Runs: []results.Run{run}})
	if err == nil || !strings.Contains(err.Error(), "spin: it had errors; it stood still") {
		t.Errorf("error %v", err)
	}
}
