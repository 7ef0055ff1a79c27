package engine

// This file lets targets of faults precede the clients of a workload. The clients let a target acquire its lock first,
// and a holder keeps its lock while a fault needs the lock to be held.

import (
	"context"
	"sync/atomic"
	"time"
)

// precedence makes the clients of a workload give way to the targets of faults.
type precedence struct {
	over  <-chan struct{}               // closed at the end of the window
	first atomic.Pointer[chan struct{}] // closed when the targets that go first are served; nil before the first target
	pins  chan pin                      // a holder that receives one keeps its lock
}

// pin is a fault's request to a holder to report the number of its key and to keep its lock.
type pin struct {
	key   chan int        // receives the number of the key; buffered
	until <-chan struct{} // closed when the client may continue
}

// grace is how long a target competes with the workload's clients for its lock. After grace, the clients stand back.
// Otherwise a client that reacquires its lock at once could prevent the fault.
const grace = 100 * time.Millisecond

func newPrecedence(over <-chan struct{}) *precedence {
	return &precedence{over: over, pins: make(chan pin)}
}

// goFirst waits until a target is served. If that takes longer than grace, it makes the workload's clients stand back
// until this target and all earlier ones are served.
func (p *precedence) goFirst(served <-chan struct{}) {
	select {
	case <-served:
		return
	case <-time.After(grace):
	}
	all := make(chan struct{})
	defer close(all)
	before := p.first.Swap(&all)
	<-served
	if before != nil {
		<-*before
	}
}

// yieldToTargets makes a client of the workload wait until the targets that go first are served.
func (p *precedence) yieldToTargets() {
	if first := p.first.Load(); first != nil {
		select {
		case <-*first:
		case <-p.over:
		}
	}
}

// pinHolder waits for a client that has just acquired a lock, makes it keep the lock until ctx ends, and returns the
// number of the key.
func (p *precedence) pinHolder(ctx context.Context) (key int, err error) {
	h := pin{key: make(chan int, 1), until: ctx.Done()}
	select {
	case p.pins <- h:
		return <-h.key, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// keepLock blocks the holder of a key if a fault waits for a holder, so that this holder keeps the lock.
func (p *precedence) keepLock(key int) {
	select {
	case h := <-p.pins:
		h.key <- key
		<-h.until
	default:
	}
}
