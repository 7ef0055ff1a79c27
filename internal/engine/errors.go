package engine

// This file counts the errors of a run by their text.

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
)

// errorCounts holds the number of errors of a run by their text. Its methods may be called concurrently.
type errorCounts struct {
	mu     sync.Mutex
	counts map[string]int64
}

// mostKinds is the number of different error texts that a run counts separately. All further ones count as "other
// errors", which bounds the memory.
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

// kindOf returns the text of an error without the addresses of a connection. A thousand refused connections therefore
// count as one kind. A server may have chosen the text, so kindOf makes it printable.
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

// fail counts a client's error and makes the heartbeat check whether clients still make progress.
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
