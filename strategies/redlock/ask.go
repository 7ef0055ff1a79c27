package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// patience is how long a caller that can wait still waits for an answer after the node
// timeout: longer than any Redis needs that still answers.
const patience = time.Second

// answer is what a node replied to a call.
type answer struct {
	yes bool
	err error // no reply that could be used
}

// tally counts the answers of some nodes.
type tally struct {
	yes, no, failed int
	waiting         int   // have not answered yet
	err             error // one of the failed
}

func (t *tally) add(a answer) {
	switch {
	case a.err != nil:
		t.failed++
		t.err = a.err
	case a.yes:
		t.yes++
	default:
		t.no++
	}
}

// enough says whether a caller needs no more answers; overtime says that the node timeout is
// over.
type enough func(t tally, overtime bool) bool

// inTime is enough for a caller that needs only what comes within the node timeout.
func inTime(_ tally, overtime bool) bool { return overtime }

// ask calls all nodes at the same time and returns the closed poll: when all answers are
// there, when the caller has enough, or when patience ends after the node timeout. It calls
// late for a yes that comes after that.
//
// The end of ctx does not stop it: each call must end with the knowledge of what it has done.
// When ask returns, a call that still waits for a connection is not made any more. A call
// that was sent is waited for in the background until patience ends. Its connection is not
// closed, because its answer says what to undo.
func (l *Locker) ask(ctx context.Context, nodes []*node, timeout time.Duration, enough enough,
	call func(context.Context, *node) (bool, error), late func(*node),
) *poll {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout+patience)
	defer cancel() // a client gives up a wait for a connection, but not one for a reply
	p := newPoll(nodes)
	var mine sync.WaitGroup // after Close nothing else waits for them
	for i, n := range nodes {
		one := func() {
			defer p.end()
			yes, err := call(ctx, n)
			n.note(err)
			if err != nil {
				err = fmt.Errorf("%s: %w", n.name, err)
			}
			if !p.put(i, answer{yes, err}) && yes && late != nil {
				late(n)
			}
		}
		if !l.background.start(one) {
			mine.Go(one)
		}
	}
	overtime := p.wait(ctx, timeout, enough)
	cancel()
	for i, n := range nodes {
		if overtime && errors.Is(p.answers[i].err, errNoAnswer) {
			n.note(errNoAnswer)
		}
	}
	mine.Wait()
	return p
}

var errNoAnswer = errors.New("no answer")

// poll collects answers until it is closed; the calls may go on.
type poll struct {
	mu      sync.Mutex
	nodes   []*node
	answers []answer // in the nodes' order; errNoAnswer until they come
	tally   tally
	closed  bool          // answers and tally do not change any more
	news    chan struct{} // has room for one
	running atomic.Int32  // calls
	ended   chan struct{} // closed when none is running
}

func newPoll(nodes []*node) *poll {
	p := &poll{
		nodes: nodes, answers: slices.Repeat([]answer{{err: errNoAnswer}}, len(nodes)),
		tally: tally{waiting: len(nodes)},
		news:  make(chan struct{}, 1), ended: make(chan struct{}),
	}
	p.running.Store(int32(len(nodes)))
	return p
}

func (p *poll) end() {
	if p.running.Add(-1) == 0 {
		close(p.ended)
	}
}

// put returns false if the answer comes too late.
func (p *poll) put(i int, a answer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.answers[i] = a
	p.tally.waiting--
	p.tally.add(a)
	select {
	case p.news <- struct{}{}:
	default:
	}
	return true
}

// wait returns once the poll is closed, and whether that was in overtime.
func (p *poll) wait(ctx context.Context, timeout time.Duration, enough enough) (overtime bool) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for !p.close(overtime, enough) {
		select {
		case <-p.news:
		case <-timer.C:
			overtime = true
		case <-ctx.Done():
			overtime, enough = true, inTime
		}
	}
	return overtime
}

// close closes the poll if nothing more is needed. Nodes that have not answered then count as
// failed.
func (p *poll) close(overtime bool, enough enough) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = p.tally.waiting == 0 || enough(p.tally, overtime)
	if p.closed && p.tally.waiting > 0 {
		p.tally.waiting = 0
		for i, a := range p.answers {
			if errors.Is(a.err, errNoAnswer) {
				p.answers[i].err = fmt.Errorf("%s: %w in time", p.nodes[i].name, errNoAnswer)
				p.tally.add(p.answers[i])
			}
		}
	}
	return p.closed
}
