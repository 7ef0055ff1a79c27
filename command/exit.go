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

// The exit codes. If several codes apply, lockbench exits with the one that comes first in this order: 104 or 113
// (which exclude each other), 130, 105, 111, 110, 112, 99.
const (
	// ExitOK means that everything was measured and no fault was found.
	ExitOK = 0
	// ExitFailure means a failure that none of the other codes describes, such as an output file that could not be written
	// after the run.
	ExitFailure = 1
	// ExitThreshold means that a threshold was crossed or could not be judged, or that
	// a counter-case failed.
	ExitThreshold = 99
	// ExitConfig means that flags, environment or plan are wrong, or that a limit of the server or of this machine is too
	// small for the plan.
	ExitConfig = 104
	// ExitInterrupted means that the user stopped the command and that the results so far
	// have been written. After a second signal, or if the current run did not end within
	// 8 s of SIGTERM, these are the results of the completed runs only.
	ExitInterrupted = 105
	// ExitStopped means that the user stopped the command before there were results, or that a second signal forced an end
	// and the results could not be written within 1 s.
	ExitStopped = 130
	// ExitRegression means that the head of a comparison is worse than the base.
	ExitRegression = 110
	// ExitSafety means that a guarantee which a strategy claims did not hold.
	ExitSafety = 111
	// ExitInvalid means that the figures of at least one run cannot be trusted, or that
	// a verdict is undecided, for example because there are too few sessions.
	ExitInvalid = 112
	// ExitUnreachable means that no server could be reached or started, or that a server became unreachable during the
	// measurement. In the latter case lockbench writes the results so far.
	ExitUnreachable = 113
)

// exit is an error with an exit code.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string { return e.err.Error() }
func (e *exit) Unwrap() error { return e.err }

// exitCode returns the exit code that belongs to a command's error. It returns ExitConfig for an error that has no code
// of its own.
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

// outcome returns the error of a run with its exit code. If the run itself succeeded, outcome returns the error of
// judge, which is nil if the report shows no fault.
func outcome(ctx context.Context, r *results.Report, err error) error {
	nothing := r == nil || len(r.Runs) == 0
	switch {
	case r != nil && (r.Interrupted && err == nil || errors.Is(err, context.Canceled) &&
		(r.Interrupted || ctx.Err() != nil)):
		return &exit{ExitInterrupted, errors.New("interrupted; the results are incomplete")}
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
	return &exit{code, errors.Join(err, without(verdict, err))}
}

// notTrusted is the beginning of the error about a strategy without valid figures.
const notTrusted = "figures that cannot be trusted: "

// without removes from verdict the lines about strategies whose errors err already contains.
func without(verdict, err error) error {
	return errors.Join(slices.DeleteFunc(flatten(verdict), func(line error) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(line.Error(), notTrusted), ": ")
		return strings.HasPrefix(line.Error(), notTrusted) && strings.Contains(err.Error(), "run "+name+": ")
	})...)
}

// judge returns an error if a run in the report broke a guarantee, is invalid or crossed a threshold.
func judge(r *results.Report) error {
	if r == nil {
		return nil
	}
	var broken, seen []string
	var invalid []error
	for _, run := range r.Runs {
		if len(run.Safety.Broken) > 0 {
			broken = append(broken, run.Strategy)
		}
		if !run.Valid() {
			if !slices.Contains(seen, run.Strategy) {
				invalid = append(invalid, fmt.Errorf("%s%s: %s", notTrusted, run.Strategy, run.Invalid))
			}
			seen = append(seen, run.Strategy)
		}
	}
	switch {
	case len(broken) > 0:
		return &exit{ExitSafety, fmt.Errorf("a claimed guarantee did not hold: %s", names(broken))}
	case len(invalid) > 0:
		return &exit{ExitInvalid, errors.Join(invalid...)}
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

// printed adds ExitFailure to the error of a write to standard output. It returns nil if err is nil.
func printed(err error) error {
	if err == nil {
		return nil
	}
	return &exit{ExitFailure, fmt.Errorf("print: %w", err)}
}

// names joins the names of strategies, sorted and without duplicates.
func names(strategies []string) string {
	slices.Sort(strategies)
	return strings.Join(slices.Compact(strategies), ", ")
}
