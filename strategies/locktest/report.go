package locktest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// report is what a check reports, and how it ends. All goroutines of the check may write to
// it, but only the goroutine that plays the check may end it.
type report struct {
	ctx context.Context

	mu       sync.Mutex
	failures []Failure
	log      []string
	end      Outcome // NotApplicable, NotTried or NotJudged; Passed while it is none of these
	err      error   // why
	cleanups []func()
	atItsEnd bool // the check came to its own end
}

// errorf records what showed that the check's promise is broken.
func (s *stage) errorf(format string, args ...any) { s.broken(s.check.Promise, format, args...) }

// fatalf is errorf, and ends the check.
func (s *stage) fatalf(format string, args ...any) { s.brokenNow(s.check.Promise, format, args...) }

// brokenNow is broken, and ends the check.
func (s *stage) brokenNow(promise, format string, args ...any) {
	s.broken(promise, format, args...)
	runtime.Goexit()
}

// broken is errorf for a promise that another check is about.
func (s *stage) broken(promise, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, Failure{s.check.Name, promise, fmt.Sprintf(format, args...)})
}

// notApplicable ends the check because the lock lacks what the check is about.
func (s *stage) notApplicable(why string) { s.stop(NotApplicable, errors.New(why)) }

// notTried ends the check because the fixture cannot do what the check needs.
func (s *stage) notTried(format string, args ...any) { s.stop(NotTried, fmt.Errorf(format, args...)) }

// notJudged ends the check because it could not find out whether the promise is kept. The
// last argument is the error, if there is one, with %w.
func (s *stage) notJudged(format string, args ...any) { s.stop(NotJudged, fmt.Errorf(format, args...)) }

func (s *stage) stop(end Outcome, err error) {
	s.mu.Lock()
	if s.end == Passed {
		s.end, s.err = end, err
	}
	s.mu.Unlock()
	runtime.Goexit()
}

// alive ends the check if its context has ended.
func (s *stage) alive() {
	if err := s.ctx.Err(); err != nil {
		s.notJudged("it was ended from outside: %w", err)
	}
}

// Failed says whether a promise was found broken.
func (r *report) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failures) > 0
}

// Logf records what is worth knowing but breaks no promise.
func (r *report) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

// Cleanup registers do for the end of the check; what was registered last runs first.
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

// passed says whether the check came to its own end and found nothing.
func (r *report) passed() bool { return r.atItsEnd && !r.Failed() }

// conclude fills in the outcome.
func (r *report) conclude(v *Verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v.Failures, v.Log, v.Outcome = slices.Clone(r.failures), slices.Clone(r.log), r.end
	switch {
	case len(v.Failures) > 0:
		v.Outcome = Broken
		return
	case r.end == Passed && !r.atItsEnd:
		v.Outcome = NotJudged
		r.err = errors.New("something outside the suite ended it, such as FailNow in a function of the fixture")
	case r.end == Passed:
		return
	}
	v.Because = r.err.Error()
	if v.Outcome == NotJudged {
		v.Err = r.err
	}
}
