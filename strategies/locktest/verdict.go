package locktest

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Verdict is the judgement of a check on a lock. It is not a results.Verdict, so that a lock's test need not import
// package results.
type Verdict string

// These are the verdicts of a check. Only Passed is evidence for a lock, and only Broken is evidence against it.
const (
	Passed        Verdict = "passed"         // the check found no broken promise
	Broken        Verdict = "broken"         // a promise was broken; Failures has the evidence
	Admitted      Verdict = "admitted"       // a promise was broken, as the Limits of the lock's Info declare
	NotApplicable Verdict = "not applicable" // the lock does not claim the promise or lacks the feature
	NotTried      Verdict = "not tried"      // the Fixture lacks what the check needs, or a basic promise is broken
	NotJudged     Verdict = "not judged"     // the check ended early because of Err, such as a server that did not start
)

// Result is what one check has found about one lock.
type Result struct {
	Check   string // its name
	Proves  string // what a pass proves
	Verdict Verdict
	// Because is the reason for a verdict other than Passed and Broken. For Admitted it is the reason that the lock's Info
	// declares.
	Because string
	Err     error // the error behind Because if the verdict is NotJudged, for errors.Is
	// Failures are the evidence for Broken and Admitted, in the order in which they were seen.
	Failures []Failure
	Log      []string // further observations of the check
	Took     time.Duration

	early bool // the check ended before its function returned
}

// String returns the result on one line, followed by one line for each failure.
func (v Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", v.Check, v.Verdict)
	if v.Because != "" {
		fmt.Fprintf(&b, ", because %s", v.Because)
	}
	for _, f := range v.Failures {
		fmt.Fprintf(&b, "\n    %s", f)
	}
	return b.String()
}

// Failure is one observation that shows a promise to be broken.
type Failure struct {
	Check   string // the check that found it
	Promise string // not always the promise of that check
	Seen    string // what the check saw
}

// String returns the failure on one line that begins with the promise.
func (f Failure) String() string { return fmt.Sprintf("broken promise: %s: %s", f.Promise, f.Seen) }

// report collects a check's result while the check runs. All goroutines of the check may write to it, but only the
// goroutine that runs the check may end the check.
type report struct {
	mu       sync.Mutex
	result   Result // without a Verdict until the check ends
	cleanups []func()
	atItsEnd bool // the check's function returned
}

// errorf records an observation that shows the check's promise to be broken.
func (s *stage) errorf(format string, args ...any) { s.broken(s.check.Promise, format, args...) }

// fatalf is like errorf, and also ends the check.
func (s *stage) fatalf(format string, args ...any) { s.brokenNow(s.check.Promise, format, args...) }

// brokenNow is like broken, and also ends the check.
func (s *stage) brokenNow(promise, format string, args ...any) {
	s.broken(promise, format, args...)
	runtime.Goexit()
}

// broken is like errorf, but for the given promise instead of the check's own.
func (s *stage) broken(promise, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result.Failures = append(s.result.Failures, Failure{s.check.Name, promise, fmt.Sprintf(format, args...)})
}

// notApplicable ends the check because the lock lacks the feature under test.
func (s *stage) notApplicable(why string) { s.stop(NotApplicable, errors.New(why)) }

// notTried ends the check because the fixture cannot do what the check needs.
func (s *stage) notTried(format string, args ...any) { s.stop(NotTried, fmt.Errorf(format, args...)) }

// notJudged ends the check because it could not determine whether the lock keeps the promise. An error is the last
// argument, formatted with %w.
func (s *stage) notJudged(format string, args ...any) { s.stop(NotJudged, fmt.Errorf(format, args...)) }

// must ends the check without a verdict if err is not nil. Such an error means that the suite could not open an
// instance, or could not inspect or disturb a server.
func (s *stage) must(what string, err error) {
	if err != nil {
		s.alive()
		s.notJudged("%s: %w", what, err)
	}
}

func (r *report) stop(end Verdict, why error) {
	r.mu.Lock()
	r.result.Verdict, r.result.Because = end, why.Error()
	if end == NotJudged {
		r.result.Err = why
	}
	r.mu.Unlock()
	runtime.Goexit()
}

// alive ends the check if its context has ended.
func (s *stage) alive() {
	if err := s.ctx.Err(); err != nil {
		s.notJudged("the check was cancelled: %w", err)
	}
}

// Failed reports whether a promise was found broken.
func (r *report) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.result.Failures) > 0
}

// Logf records an observation that breaks no promise.
func (r *report) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Log = append(r.result.Log, fmt.Sprintf(format, args...))
}

// Cleanup registers a function to be called when the check has ended. The last registered function is called first.
func (r *report) Cleanup(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, do)
}

func (r *report) cleanUp() {
	r.mu.Lock()
	all := slices.Clone(r.cleanups)
	r.mu.Unlock()
	for _, do := range slices.Backward(all) {
		do()
	}
}

// passed reports whether the check's function returned without a failure.
func (r *report) passed() bool { return r.atItsEnd && !r.Failed() }

// conclude returns the result. limit is the reason that the lock's Info declares for failing the check, or "".
func (r *report) conclude(limit string) Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.result
	v.early = !r.atItsEnd
	v.Failures, v.Log = slices.Clone(v.Failures), slices.Clone(v.Log)
	switch {
	case len(v.Failures) > 0 && limit != "":
		v.Verdict, v.Because, v.Err = Admitted, limit, nil
	case len(v.Failures) > 0:
		v.Verdict, v.Because, v.Err = Broken, "", nil
	case r.atItsEnd:
		v.Verdict = Passed
	case v.Verdict == "":
		v.Err = errors.New("the check was ended by code outside the suite, such as FailNow in the fixture")
		v.Verdict, v.Because = NotJudged, v.Err.Error()
	}
	return v
}
