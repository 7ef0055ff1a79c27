package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
)

// The exit codes. If several fit, the first in this order counts: an error (104, 113),
// 130, 105, 111, 110, 112, 99.
const (
	// ExitOK says that everything was measured and nothing was found wrong.
	ExitOK = 0
	// ExitFailure says that something without its own code went wrong, such as an
	// output file that could not be written after the run.
	ExitFailure = 1
	// ExitThreshold says that a threshold was crossed or could not be judged, or that
	// a counter-case failed.
	ExitThreshold = 99
	// ExitConfig says that flags, environment or plan are wrong, or that a limit
	// of the server or of this machine is too small for them.
	ExitConfig = 104
	// ExitInterrupted says that the user stopped it, and that the results so far have
	// been written: after a second signal, or where the run under way did not end within
	// 8 s of SIGTERM, those of the runs that had ended.
	ExitInterrupted = 105
	// ExitStopped says that the user stopped it before there were results, or that they
	// could not be written in time after a second signal.
	ExitStopped = 130
	// ExitRegression says that a build is worse than the one it was compared with.
	ExitRegression = 110
	// ExitSafety says that a guarantee which a strategy claims did not hold.
	ExitSafety = 111
	// ExitInvalid says that the figures of at least one run cannot be trusted, that
	// there are too few of them for any verdict, or that what was to be decided is not.
	ExitInvalid = 112
	// ExitUnreachable says that no Redis could be reached or started, or that it
	// went away. What was measured before is written.
	ExitUnreachable = 113
)

// exit is an error that knows its exit code.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string { return e.err.Error() }
func (e *exit) Unwrap() error { return e.err }

// exitCode returns the code for a command's error. An error without its own code is a
// usage error.
func exitCode(ctx context.Context, err error) int {
	if known, ok := errors.AsType[*exit](err); ok {
		return known.code
	}
	switch {
	case err == nil:
		return ExitOK
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return ExitStopped // such as while connecting: there are no results to write
	case errors.Is(err, lockbench.ErrUnreachable):
		return ExitUnreachable
	case errors.Is(err, lockbench.ErrGenerator):
		return ExitInvalid
	default:
		return ExitConfig
	}
}

// outcome returns the error of a run with its code, or else what the report says; nil if
// all is well.
func outcome(ctx context.Context, r *results.Report, err error) error {
	nothing := r == nil || len(r.Runs) == 0
	switch {
	case r != nil && (r.Interrupted && err == nil || errors.Is(err, context.Canceled) &&
		(r.Interrupted || ctx.Err() != nil)):
		return &exit{ExitInterrupted, errors.New("interrupted, the results are not complete")}
	case err == nil:
		return judge(r)
	case errors.Is(err, lockbench.ErrUnreachable), errors.Is(err, context.Canceled) && ctx.Err() != nil,
		errors.Is(err, lockbench.ErrConfig) && nothing, errors.Is(err, lockbench.ErrGenerator) && nothing:
		return err
	}
	verdict := judge(r)
	code := ExitFailure
	if known, ok := errors.AsType[*exit](verdict); ok {
		code = known.code
	}
	if errors.Is(err, lockbench.ErrGenerator) && (code == ExitFailure || code == ExitThreshold) {
		code = ExitInvalid
	}
	return &exit{code, errors.Join(err, verdict)}
}

// judge returns an error for what is wrong with a complete report's runs.
func judge(r *results.Report) error {
	if r == nil {
		return nil
	}
	var broken, invalid []string
	var why []error
	for _, run := range r.Runs {
		if len(run.Safety.Broken) > 0 {
			broken = append(broken, run.Strategy)
		}
		if !run.Valid() {
			if !slices.Contains(invalid, run.Strategy) {
				why = append(why, fmt.Errorf("%s: %s", run.Strategy, run.Invalid))
			}
			invalid = append(invalid, run.Strategy)
		}
	}
	switch {
	case len(broken) > 0:
		return &exit{ExitSafety, fmt.Errorf("a claimed guarantee did not hold: %s", names(broken))}
	case len(invalid) > 0:
		return &exit{ExitInvalid, errors.Join(append([]error{fmt.Errorf("figures that cannot be trusted: %s",
			names(invalid))}, why...)...)}
	case len(r.Crossed()) > 0:
		var crossed []error
		for _, v := range r.Crossed() {
			crossed = append(crossed, fmt.Errorf("a threshold was crossed: %s", v))
		}
		return &exit{ExitThreshold, errors.Join(crossed...)}
	default:
		return nil
	}
}

// printed gives an error of writing to standard output its exit code.
func printed(err error) error {
	if err == nil {
		return nil
	}
	return &exit{ExitFailure, fmt.Errorf("print: %w", err)}
}

// names lists each strategy once, sorted.
func names(strategies []string) string {
	slices.Sort(strategies)
	return strings.Join(slices.Compact(strategies), ", ")
}
