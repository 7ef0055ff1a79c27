package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// patience is how long a caller that can wait waits for an answer after the node timeout. A Redis that answers at all
// needs less.
const patience = time.Second

// grace is the longest time for which a caller waits for the nodes after the end of its context.
const grace = 200 * time.Millisecond

// errNoAnswer is the error of a node that has not answered in time.
var errNoAnswer = errors.New("no answer in time")

// answer is the reply of a node to a call.
type answer struct {
	node *node
	yes  bool
	err  error // the error if there is no usable reply
}

// tally counts the answers of some nodes.
type tally struct {
	yes, no, failed int
	waiting         int   // nodes that have not answered yet
	err             error // the error of one failed node
}

func (t *tally) add(a answer) {
	switch {
	case a.err != nil:
		t.failed++
		t.err = fmt.Errorf("%s: %w", a.node.name, a.err)
	case a.yes:
		t.yes++
	default:
		t.no++
	}
}

// enough reports whether a caller needs no more answers; overtime is true if the node timeout is over.
type enough func(t tally, overtime bool) bool

// inTime is an enough function for a caller that needs only the answers within the node timeout.
func inTime(_ tally, overtime bool) bool { return overtime }

// poll is the result of a call to some nodes.
type poll struct {
	answers []answer // one for each node; errNoAnswer for nodes that were not waited for
	tally   tally
	ended   chan struct{} // closed when no call is running
}

func (p *poll) add(a answer) {
	p.answers = append(p.answers, a)
	p.tally.add(a)
}

// addAll counts the answers that are there when a wait ends, because the caller itself may be late.
func (p *poll) addAll(answers <-chan answer) {
	for range len(answers) {
		p.tally.waiting--
		p.add(<-answers)
	}
}

// ask calls all nodes concurrently and returns when all answers are there, when the caller has enough, or when
// patience ends after the node timeout. It calls late for a yes that arrives afterwards.
//
// The end of ctx shortens this to the rest of the node timeout, at most grace. It does not end a call, because the
// result of the call must be known. When ask returns, a call that still waits for a connection is dropped. A
// goroutine waits for a call that was sent until patience ends. Its connection stays open, because the answer
// determines what must be undone.
func (l *Locker) ask(ctx context.Context, nodes []*node, timeout time.Duration, enough enough,
	call func(context.Context, *node) (bool, error), late func(*node),
) poll {
	began, ended := time.Now(), ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout+patience)
	defer cancel() // this ends a client's wait for a connection, but not for a reply
	answers, over := make(chan answer, len(nodes)), make(chan struct{})
	for _, n := range nodes {
		ask := func() {
			yes, err := call(ctx, n)
			n.note(err)
			answers <- answer{n, yes, err}
		}
		if !l.background.Go(ask) { // after Close only the caller waits for it
			go ask()
		}
	}
	p := poll{answers: make([]answer, 0, len(nodes)), ended: over}
	p.tally.waiting = len(nodes)
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	overtime := false
	for p.tally.waiting > 0 && !enough(p.tally, overtime) {
		select {
		case a := <-answers:
			p.tally.waiting--
			p.add(a)
			continue
		case <-timer.C:
			overtime = true
		case <-ended:
			ended, enough = nil, inTime
			timer.Reset(min(time.Until(began.Add(timeout)), grace))
		case <-ctx.Done():
			overtime, enough = true, inTime
		}
		p.addAll(answers)
	}
	rest := p.tally.waiting
	p.giveUp(nodes, overtime)
	wait := func() {
		defer close(over)
		for range rest {
			if a := <-answers; a.yes && late != nil {
				late(a.node)
			}
		}
	}
	if rest == 0 || !l.background.Go(wait) { // after Close its caller waits
		cancel()
		wait()
	}
	return p
}

// giveUp counts the nodes without an answer as failed.
func (p *poll) giveUp(nodes []*node, overtime bool) {
	if p.tally.waiting == 0 {
		return
	}
	p.tally.waiting = 0
	for _, n := range nodes {
		if slices.ContainsFunc(p.answers, func(a answer) bool { return a.node == n }) {
			continue
		}
		if overtime {
			n.note(errNoAnswer)
		}
		p.add(answer{n, false, errNoAnswer})
	}
}
