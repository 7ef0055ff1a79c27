package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// foundation records which basic promises the checks of a run have found broken. A lock that breaks a basic promise
// also fails nearly all later checks, and most of them take their full patience to fail. A run therefore does not try
// these later checks.
type foundation struct {
	broken     string // why no later check is tried
	unrecovers string // why no check that needs recovery is tried
	waited     bool   // a check failed only after its patience
}

// hurriedPatience replaces usualPatience after a check that failed only when its patience had passed. Such a run can no
// longer pass, so it should end soon: the lock's author waits for the result.
const hurriedPatience = 8 * time.Second

// judge runs a check on the fixture that furnish returns. If c relies on a promise that an earlier check found broken,
// judge does not run c, and the result is NotTried.
func (f *foundation) judge(ctx context.Context, c Check, furnish func() Fixture, info strategies.Info) Result {
	if why := f.lacks(c); why != "" && c.Inapplicable(info) == "" {
		return Result{Check: c.Name, Proves: c.Proves, Verdict: NotTried, Because: why}
	}
	fixture := furnish()
	if f.waited && fixture.Patience == 0 && limit(c.Name, info) == "" {
		fixture.Patience = hurriedPatience
	}
	v := c.Judge(ctx, fixture, info)
	f.learn(v)
	return v
}

// lacks returns the reason not to try a check, or "" if the run may try it.
func (f *foundation) lacks(c Check) string {
	if c.needs&recovers != 0 {
		return cmp.Or(f.broken, f.unrecovers)
	}
	return f.broken
}

// learn records a basic promise that the check found broken. A failure that the lock's Info declares (Admitted) has no
// effect.
func (f *foundation) learn(v Result) {
	const first = "acquire and release"
	if v.Verdict == NotJudged && v.Check == first && !errors.Is(v.Err, context.Canceled) {
		f.broken = fmt.Sprintf("other checks rely on the check %q, which reached no verdict: %s", v.Check, v.Because)
	}
	if v.Verdict != Broken {
		return
	}
	f.waited = f.waited || v.Took >= usualPatience
	cause := v.Failures[0]
	if v.early {
		cause = v.Failures[len(v.Failures)-1]
	}
	reason := fmt.Sprintf("the check %q found a promise broken on which other checks rely: %s", v.Check, cause.Promise)
	switch v.Check {
	case first:
		if v.early {
			f.broken = reason
		}
	case "exclusion":
		if cause.Promise != growing { // no other check relies on that promise
			f.broken = reason
		}
	case "strange keys", "permits", "stranger", "try-lock", "cancelled wait":
		if v.early && slices.Contains([]string{ending, trying}, cause.Promise) {
			f.broken = reason
		}
	case "dead holder":
		if v.early && cause.Promise == recovering {
			f.unrecovers = reason
		}
	}
}
