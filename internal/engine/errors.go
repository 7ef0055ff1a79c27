package engine

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
)

// errorCounts counts errors by their text.
type errorCounts struct {
	mu     sync.Mutex
	counts map[string]int64
}

// mostKinds bounds the memory for a strategy with many different errors.
const mostKinds = 50

func (e *errorCounts) add(err error) {
	kind := kindOf(err)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.counts == nil {
		e.counts = map[string]int64{}
	}
	if _, known := e.counts[kind]; !known && len(e.counts) >= mostKinds {
		kind = "other errors"
	}
	e.counts[kind]++
}

// kindOf leaves out the addresses of a connection, so that a thousand refused
// connections are one kind. A server chose the words of its errors.
func kindOf(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Sprintf("%s: %v", op.Op, op.Err)
	}
	return untrusted.Printable(err.Error())
}

// list returns the counts, the most frequent first.
func (e *errorCounts) list() []results.ErrorCount {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []results.ErrorCount
	for kind, n := range e.counts {
		list = append(list, results.ErrorCount{Error: kind, Count: n})
	}
	slices.SortFunc(list, func(a, b results.ErrorCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Error, b.Error))
	})
	return list
}

// fail counts a client's error and makes the heartbeat check the progress.
func (r *run) fail(err error) {
	r.errors.add(err)
	if !r.disturbance.explains(r.clock.Now()) {
		r.failures.Add(1)
	}
	r.troubled()
}

// errorLimit is the ratio of errors to acquisitions above which a run is invalid.
const errorLimit = 0.01

// failed says why a run with too many errors, or without acquisitions, is invalid.
func (r *run) failed(result *results.Run) string {
	granted, failures := result.Speed.Acquisitions, r.failures.Load()
	switch {
	case granted == 0 && len(result.Errors) > 0:
		return "it had errors and not one acquisition: " + result.Errors[0].Error
	case granted == 0 && len(r.Workload.Faults) == 0 && !r.shared(): // in a session the other processes may have had the lock
		return "it had not one acquisition"
	case float64(failures) > errorLimit*float64(granted):
		return fmt.Sprintf("%d errors for %d acquisitions, over %.0f %%: %s", failures, granted, errorLimit*100, result.Errors[0].Error)
	}
	return ""
}

func (r *run) troubled() {
	select {
	case r.control.trouble <- struct{}{}:
	default:
	}
}
