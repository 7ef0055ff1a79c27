package lockbench

import (
	"context"
	"fmt"

	"github.com/lockbench/lockbench/internal/apps/selfcheck"
	"github.com/lockbench/lockbench/results"
)

// SelfcheckPlan says how the harness is to prove itself.
type SelfcheckPlan struct {
	Redis    RedisOptions      // of one node
	Only     []string          // some of SelfcheckNames; empty is all
	Progress func(what string) // may be nil
}

// SelfcheckNames are the names of all checks, in order.
func SelfcheckNames() []string { return selfcheck.Names() }

func (p SelfcheckPlan) options() selfcheck.Options {
	return selfcheck.Options{Redis: p.Redis.options(), Only: p.Only, Progress: p.Progress, Effort: selfcheck.Full()}
}

// Validate returns every fault of the plan at once, joined.
func (p SelfcheckPlan) Validate() error { return p.options().Validate() }

// Selfcheck has the harness prove itself on this machine: it measures cases whose
// answer is known from elsewhere, in about two minutes. The document says pass,
// fail or inconclusive for each check, see docs/VALIDITY.md.
//
// The error is of having no Redis, or not being rid of it. When ctx ends the
// checks not yet finished are missing and the document says Interrupted.
func Selfcheck(ctx context.Context, plan SelfcheckPlan) (*results.Selfcheck, error) {
	if err := plan.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	found, err := selfcheck.Run(ctx, plan.options())
	if found != nil {
		found.Tool = results.Tool{Name: "lockbench", Version: Version()}
	}
	return found, err
}
