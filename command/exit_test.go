package command

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/selfcheck"
	"github.com/lockbench/lockbench/results"
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
		{"interrupted in the floors", true, stopped(report()), fmt.Errorf("floors: %w", context.Canceled), ExitInterrupted},
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
