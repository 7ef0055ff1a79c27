package engine

// The errors of a run, counted by their text.

import (
	"errors"
	"fmt"
	"net"
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

// kindOf returns the text of an error without the addresses of a connection, so that a thousand refused connections are
// one kind. A server may have chosen the text, so kindOf makes it printable.
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
	return results.CountErrors(e.counts)
}

// fail counts a client's error, so that the heartbeat checks whether clients still make progress.
func (r *run) fail(err error) {
	r.errors.add(err)
	if !r.faults.explains(r.clock.Now()) {
		r.failures.Add(1)
	}
	r.troubled()
}

func (r *run) troubled() {
	select {
	case r.control.trouble <- struct{}{}:
	default:
	}
}
