package locktest

import (
	"encoding"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Outcome is how a check ended.
type Outcome int

// The outcomes of a check. Only Passed speaks for a lock, and only Broken against it.
const (
	Passed        Outcome = iota // the check found no broken promise
	Broken                       // a promise was broken: Failures say what was seen
	Admitted                     // broken, as the lock's Info says in its Limits
	NotApplicable                // the lock does not claim it, or has no such thing
	NotTried                     // the Fixture cannot do what the check needs
	NotJudged                    // nothing is known, because of Err: no server could be had, or the machine stood still
)

var outcomes = []string{"passed", "broken", "admitted", "not applicable", "not tried", "not judged"}

// String returns the outcome in lower case: "not tried".
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
	Proves  string  `json:"proves"` // what a pass proves
	Outcome Outcome `json:"outcome"`
	// Because is why the outcome is neither Passed nor Broken. For Admitted it is what the
	// lock's Info says.
	Because string `json:"because,omitempty"`
	// Err is the error in Because if the outcome is NotJudged, for errors.Is.
	Err error `json:"-"`
	// Failures are the evidence for Broken and Admitted, in the order in which they were seen.
	Failures []Failure `json:"failures,omitempty"`
	// Log is what else the check noticed.
	Log  []string      `json:"log,omitempty"`
	Took time.Duration `json:"took_ns"`
}

// String returns the verdict in one line, and each failure in one more.
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

// Failure is a promise that was found broken.
type Failure struct {
	Check   string `json:"check"`   // the check that noticed it
	Promise string `json:"promise"` // may be another promise than the check's own
	Seen    string `json:"seen"`    // what the check saw
}

// String names the promise first.
func (f Failure) String() string { return fmt.Sprintf("broken promise: %s: %s", f.Promise, f.Seen) }
