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

// foundation is what the checks of a run have shown about the promises on which later checks rely. A lock that breaks
// one of them fails nearly all later checks too, most of them only after their patience. These checks are not tried.
type foundation struct {
	broken     string // why no later check is tried
	unrecovers string // why no check that needs recovery is tried
	waited     bool   // a check failed only after its patience
}

// hurriedPatience is the usual patience after a check that failed only after its patience. The run fails anyway then,
// and its author waits for it.
const hurriedPatience = 8 * time.Second

// judge runs a check, unless it relies on a promise that an earlier check found broken. furnish returns its fixture.
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

// lacks returns the reason not to try a check; "" means none.
func (f *foundation) lacks(c Check) string {
	if c.needs&recovers != 0 {
		return cmp.Or(f.broken, f.unrecovers)
	}
	return f.broken
}

// learn takes the result of a check into account. A check that the lock fails according to its Info is Admitted and
// has no effect.
func (f *foundation) learn(v Result) {
	const first = "acquire and release"
	if v.Verdict == NotJudged && v.Check == first && !errors.Is(v.Err, context.Canceled) {
		f.broken = fmt.Sprintf("the check %q, on which others rely, was not judged: %s", v.Check, v.Because)
	}
	if v.Verdict != Broken {
		return
	}
	f.waited = f.waited || v.Took >= usualPatience
	cause := v.Failures[0]
	if v.early {
		cause = v.Failures[len(v.Failures)-1]
	}
	reason := fmt.Sprintf("the check %q found a promise broken on which others rely: %s", v.Check, cause.Promise)
	switch v.Check {
	case first:
		if v.early {
			f.broken = reason
		}
	case "exclusion":
		if cause.Promise != growing { // which no other check relies on
			f.broken = reason
		}
	case "strange keys", "permits", "stranger", "try-lock", "cancelled wait":
		if v.early && slices.Contains([]string{ending, trying}, cause.Promise) {
			f.broken = reason
		}
	case "dead holder":
		if v.early {
			f.unrecovers = reason
		}
	}
}
