package engine

// How the clients of a workload help faults of clients: they let a target have its lock first, and a holder keeps its
// lock while a fault needs it held.

import (
	"context"
	"sync/atomic"
	"time"
)

// precedence coordinates the clients of a workload with the targets of faults.
type precedence struct {
	over  <-chan struct{}               // closed at the end of the window
	first atomic.Pointer[chan struct{}] // closed when the targets that go first are served; nil without any yet
	pins  chan pin                      // a holder that receives one keeps its lock
}

// pin makes a client keep a lock.
type pin struct {
	key   chan int        // gets the number of the key; has room for it
	until <-chan struct{} // closed when the client may go on
}

// grace is how long a target waits with the same rights as the other clients. After that
// they must stand back: a client that reacquires its lock at once could otherwise prevent the
// fault.
const grace = 100 * time.Millisecond

func newPrecedence(over <-chan struct{}) *precedence {
	return &precedence{over: over, pins: make(chan pin)}
}

// goFirst makes the workload's clients stand back while a target is not served after grace. It returns when that
// target is served, and those are that went first before.
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

// standBack makes a client of the workload wait until the targets that go first are served.
func (p *precedence) standBack() {
	if first := p.first.Load(); first != nil {
		select {
		case <-*first:
		case <-p.over:
		}
	}
}

// pinHolder waits until a holder keeps its lock, and returns the number of the key. The holder keeps it until ctx ends.
func (p *precedence) pinHolder(ctx context.Context) (key int, err error) {
	h := pin{key: make(chan int, 1), until: ctx.Done()}
	select {
	case p.pins <- h:
		return <-h.key, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// keepLock makes the holder of a key keep its lock if a fault waits for one.
func (p *precedence) keepLock(key int) {
	select {
	case h := <-p.pins:
		h.key <- key
		<-h.until
	default:
	}
}
