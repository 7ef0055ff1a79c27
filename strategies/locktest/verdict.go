package locktest

import (
	"encoding"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// Outcome is how a check ended.
type Outcome int

// The ways. Only Passed says something good of a lock, and only Broken something bad.
const (
	Passed        Outcome = iota // the promise was kept, whatever was tried
	Broken                       // Failures say what was seen
	Admitted                     // so, and the lock's Info says it in its Limits
	NotApplicable                // the lock does not claim it, or has no such thing
	NotTried                     // the Fixture cannot do what it takes
	NotJudged                    // nothing is known, for Err: a server that cannot be had, a machine that stood still
)

var outcomes = []string{"passed", "broken", "admitted", "not applicable", "not tried", "not judged"}

// String is the outcome in lower case: "not tried".
func (o Outcome) String() string {
	if o < 0 || int(o) >= len(outcomes) {
		return fmt.Sprintf("outcome %d", int(o))
	}
	return outcomes[o]
}

var _ encoding.TextMarshaler = Outcome(0)

// MarshalText writes what String returns.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (o *Outcome) UnmarshalText(text []byte) error {
	i := slices.Index(outcomes, string(text))
	if i < 0 {
		return fmt.Errorf("no outcome is called %q", text)
	}
	*o = Outcome(i)
	return nil
}

// Verdict is what one check found out about one lock, as plain data.
type Verdict struct {
	Check   string  `json:"check"`  // its name
	Proves  string  `json:"proves"` // by a lock that passes
	Outcome Outcome `json:"outcome"`
	// Because is why the outcome is neither Passed nor Broken; of Admitted, what the
	// lock's Info says.
	Because string `json:"because,omitempty"`
	// Err is what Because says of NotJudged, for errors.Is.
	Err error `json:"-"`
	// Failures are the evidence for Broken and Admitted, in the order in which they were seen.
	Failures []Failure `json:"failures,omitempty"`
	// Log is what the check noticed besides.
	Log  []string      `json:"log,omitempty"`
	Took time.Duration `json:"took_ns"`
}

// String is the verdict in a line, or of Broken in one more for each failure.
func (v Verdict) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", v.Check, v.Outcome)
	if v.Because != "" {
		fmt.Fprintf(&b, ", because %s", v.Because)
	}
	for _, f := range v.Failures {
		fmt.Fprintf(&b, "\n    %s", f)
	}
	return b.String()
}

// admit makes Admitted of Broken, where the lock says that it does not pass the check.
func (v *Verdict) admit(info strategies.Info) {
	if because := limit(v.Check, info); v.Outcome == Broken && because != "" {
		v.Outcome, v.Because = Admitted, because
	}
}

// limit is why a lock says not to pass a check, or "".
func limit(check string, info strategies.Info) string {
	for _, l := range info.Limits {
		if l.Check == check {
			return l.Because
		}
	}
	return ""
}

// Failure is a promise that was found broken.
type Failure struct {
	Check   string `json:"check"`   // that noticed
	Promise string `json:"promise"` // which may be another than the one that the check is about
	Seen    string `json:"seen"`    // what it was noticed by
}

// String names the promise first.
func (f Failure) String() string { return fmt.Sprintf("broken promise: %s: %s", f.Promise, f.Seen) }
