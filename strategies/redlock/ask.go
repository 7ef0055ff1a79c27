package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// patience is how long a caller that can wait still waits for an answer after the node
// timeout: longer than any Redis needs that still answers.
const patience = time.Second

// grace is how long a caller waits for the nodes after the end of its context, if the node timeout is longer.
const grace = 200 * time.Millisecond

// errNoAnswer is the error of a node that has not answered in time.
var errNoAnswer = errors.New("no answer in time")

// answer is what a node replied to a call.
type answer struct {
	node *node
	yes  bool
	err  error // no reply that could be used
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
		t.err = fmt.Errorf("%s: %w", a.node.name, a.err)
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

// poll is what came of a call to some nodes.
type poll struct {
	answers []answer // of each node; errNoAnswer of those that were not waited for
	tally   tally
	ended   chan struct{} // closed when no call is running
}

func (p *poll) add(a answer) {
	p.answers = append(p.answers, a)
	p.tally.add(a)
}

// addAll counts the answers that are there when a wait ends: it may be the caller that is late.
func (p *poll) addAll(answers <-chan answer) {
	for range len(answers) {
		p.tally.waiting--
		p.add(<-answers)
	}
}

// ask calls all nodes at the same time and returns when all answers are there, when the caller
// has enough, or when patience ends after the node timeout. It calls late for a yes that comes
// after that.
//
// The end of ctx shortens that to the rest of the node timeout, and to grace. It does not end a
// call, which must end with the knowledge of what it has done. When ask returns, a call that still
// waits for a connection is not made any more. A call that was sent is waited for in the background
// until patience ends. Its connection is not closed, because its answer says what to undo.
func (l *Locker) ask(ctx context.Context, nodes []*node, timeout time.Duration, enough enough,
	call func(context.Context, *node) (bool, error), late func(*node),
) poll {
	began, ended := time.Now(), ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout+patience)
	defer cancel() // a client gives up a wait for a connection, but not one for a reply
	answers, over := make(chan answer, len(nodes)), make(chan struct{})
	for _, n := range nodes {
		ask := func() {
			yes, err := call(ctx, n)
			n.note(err)
			answers <- answer{n, yes, err}
		}
		if !l.background.Go(ask) { // after Close nobody but the caller waits for it
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

// giveUp counts the nodes that have not answered as failed.
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
