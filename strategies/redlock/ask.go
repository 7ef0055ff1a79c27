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

// patience is how long an answer is still waited for after the node timeout, by
// somebody who has the time: longer than any Redis that still answers needs.
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

// enough says whether a caller needs no more answers; overtime begins with the
// node timeout.
type enough func(t tally, overtime bool) bool

// inTime is enough for who takes what comes within the node timeout.
func inTime(_ tally, overtime bool) bool { return overtime }

// ask calls all nodes at the same time and returns the closed poll: when all
// answers are there, when the caller has enough, or when patience ends after the timeout of
// one node. A yes that
// comes later is handed to late.
//
// The end of ctx is no reason to stop: a call ends with the knowledge of what it
// has done. A call still waiting for a connection when ask returns is not made
// any more. One that was sent is waited for in the background until patience ends,
// rather than having its connection closed: its answer then says what to undo.
func (l *Locker) ask(ctx context.Context, nodes []*node, timeout time.Duration, enough enough,
	call func(context.Context, *node) (bool, error), late func(*node)) *poll {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout+patience)
	defer cancel() // a client gives up a wait for a connection, but not one for a reply
	p := newPoll(nodes)
	var mine sync.WaitGroup // nobody else waits for them after Close
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
		nodes: nodes, answers: slices.Repeat([]answer{{err: errNoAnswer}}, len(nodes)), tally: tally{waiting: len(nodes)},
		news: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	p.running.Store(int32(len(nodes)))
	return p
}

func (p *poll) end() {
	if p.running.Add(-1) == 0 {
		close(p.ended)
	}
}

// put is false when the answer comes too late.
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

// close closes the poll if nothing more is needed. Who has not answered then
// counts as failed.
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
