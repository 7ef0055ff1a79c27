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

// Verdict is the judgement of a check on a lock. It is not a results.Verdict, so that the test of a lock does not
// import package results.
type Verdict string

// These are the verdicts of a check. Only Passed is evidence for a lock, and only Broken is evidence against it.
const (
	Passed        Verdict = "passed"         // the check found no broken promise
	Broken        Verdict = "broken"         // a promise was broken; Failures has the evidence
	Admitted      Verdict = "admitted"       // broken, as declared in the Limits of the lock's Info
	NotApplicable Verdict = "not applicable" // the lock does not claim the promise or lacks the feature
	NotTried      Verdict = "not tried"      // the Fixture lacks what the check needs, or a basic promise is broken
	NotJudged     Verdict = "not judged"     // no result because of Err, such as a server that does not start
)

// Result is the result of one check of one lock.
type Result struct {
	Check   string // its name
	Proves  string // what a pass proves
	Verdict Verdict
	// Because is the reason why the verdict is neither Passed nor Broken. For Admitted it is the reason in the lock's
	// Info.
	Because string
	Err     error // the error in Because if the verdict is NotJudged, for errors.Is
	// Failures are the evidence for Broken and Admitted, in the order in which they were seen.
	Failures []Failure
	Log      []string // further observations of the check
	Took     time.Duration

	early bool // the check's function did not return
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

// Failure is one broken promise.
type Failure struct {
	Check   string // the check that found it
	Promise string // may be another promise than the check's own
	Seen    string // what the check saw
}

// String names the promise first.
func (f Failure) String() string { return fmt.Sprintf("broken promise: %s: %s", f.Promise, f.Seen) }

// report is a check's result until it is complete. All goroutines of the check may write to it, but only the
// goroutine that runs the check may end it.
type report struct {
	mu       sync.Mutex
	result   Result // without a Verdict until the check ends
	cleanups []func()
	atItsEnd bool // the check's function returned
}

// errorf records an observation that shows that the check's promise is broken.
func (s *stage) errorf(format string, args ...any) { s.broken(s.check.Promise, format, args...) }

// fatalf is errorf, and ends the check.
func (s *stage) fatalf(format string, args ...any) { s.brokenNow(s.check.Promise, format, args...) }

// brokenNow is broken, and ends the check.
func (s *stage) brokenNow(promise, format string, args ...any) {
	s.broken(promise, format, args...)
	runtime.Goexit()
}

// broken is errorf for the promise of another check.
func (s *stage) broken(promise, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result.Failures = append(s.result.Failures, Failure{s.check.Name, promise, fmt.Sprintf(format, args...)})
}

// notApplicable ends the check because the lock lacks the tested feature.
func (s *stage) notApplicable(why string) { s.stop(NotApplicable, errors.New(why)) }

// notTried ends the check because the fixture cannot do what the check needs.
func (s *stage) notTried(format string, args ...any) { s.stop(NotTried, fmt.Errorf(format, args...)) }

// notJudged ends the check because it could not determine whether the promise is kept. The last argument is the
// error, if there is one, with %w.
func (s *stage) notJudged(format string, args ...any) { s.stop(NotJudged, fmt.Errorf(format, args...)) }

// must ends the check on an error of its set-up: an instance was not opened, or a command that inspects or disturbs
// the servers failed.
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

// Cleanup registers a function for the end of the check; the function registered last runs first.
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

// passed reports whether the check's function returned and found no fault.
func (r *report) passed() bool { return r.atItsEnd && !r.Failed() }

// conclude returns the result. If the lock's Info declares that the lock fails the check, limit is the declared
// reason.
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
		v.Err = errors.New("code outside the suite ended the check, such as FailNow in a function of the fixture")
		v.Verdict, v.Because = NotJudged, v.Err.Error()
	}
	return v
}
