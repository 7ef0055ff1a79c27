package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/internal/apps/claims"
)

func counterFormats() formats[*claims.CounterDocument] {
	return formats[*claims.CounterDocument]{one: map[string]writer[*claims.CounterDocument]{
		"table":    claims.WriteCounterTable,
		"json":     plain(claims.WriteCounterJSON),
		"markdown": plain(claims.WriteCounterMarkdown),
	}}
}

// counter carries out the counter-cases of claims, or shows what it would do. wrong joins
// the errors found before.
func (a *app) counter(ctx context.Context, f *claimsFlags, args []string, chosen []claims.Claim, given *source, wrong error) error {
	outputs, faulty := parseOutputs(f.outputs, "table", counterFormats())
	bench, all := a.bench(f), claims.Countered(chosen)
	if f.list {
		faulty = errors.Join(faulty, errors.New("--counter cannot be had with --list"))
	}
	if f.title != "" {
		faulty = errors.Join(faulty, errors.New("--counter has no --title"))
	}
	faults := a.problems(*given, wrong, faulty, f.redis.Validate(), claims.CountersMissing(chosen), bench.Check(all), clashes(f.reads(args, all), places(outputs)))
	if faults != nil {
		return faults
	}
	if f.dryRun {
		return printed(showClaims(a.stdout, bench, all, outputs))
	}
	tested, err := bench.Test(ctx, all)
	document := claims.CounterCases(tested)
	revision(&document.Tool)
	if err := saveAll(a, outputs, document); err != nil {
		return &exit{ExitFailure, err}
	}
	failed := document.Failed()
	switch {
	case document.Interrupted:
		return &exit{ExitInterrupted, errors.New("interrupted, counter-cases are missing")}
	case err != nil:
		return err
	case len(failed) > 0:
		return &exit{ExitThreshold, fmt.Errorf("counter-cases that did not come out as they must: %d of %d; the first: claim %s, %s", len(failed), len(document.Cases), failed[0].Claim, failed[0].Without.What)}
	}
	return nil
}
