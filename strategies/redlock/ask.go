package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// patience is how long a release or an extension still waits for replies after the node timeout. A working Redis
// replies sooner.
const patience = time.Second

// grace is the longest time for which a caller waits for the nodes after the end of its context.
const grace = 200 * time.Millisecond

// errNoAnswer is the error of a node that has not replied when ask returns.
var errNoAnswer = errors.New("no reply in time")

type answer struct {
	node *node
	yes  bool  // the node has done what the call requested
	err  error // why there is no usable reply
}

// tally counts the answers of the nodes that were called.
type tally struct {
	yes, no, failed int
	waiting         int   // nodes that have not replied yet
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

// enough reports whether a caller needs no more answers. overtime is true if the node timeout has passed.
type enough func(t tally, overtime bool) bool

// inTime is an enough function for a caller that needs only the answers within the node timeout.
func inTime(_ tally, overtime bool) bool { return overtime }

// poll holds the replies of the nodes to one call of ask.
type poll struct {
	answers []answer // one for each node; with errNoAnswer if ask did not wait for the node's reply
	tally   tally
	ended   chan struct{} // closed when no call is running any more
}

func (p *poll) add(a answer) {
	p.answers = append(p.answers, a)
	p.tally.add(a)
}

// addAll counts the answers that are already in the channel. When a wait ends there may be several, because the caller
// itself may be delayed.
func (p *poll) addAll(answers <-chan answer) {
	for range len(answers) {
		p.tally.waiting--
		p.add(<-answers)
	}
}

// ask runs call for all nodes concurrently. It returns when all answers have arrived, when enough returns true, or when
// patience has passed since the end of the node timeout. If a node answers yes after ask has returned, a goroutine
// calls late with this node.
//
// If ctx ends, ask waits only until the node timeout ends, and no longer than grace. The calls do not end with ctx,
// because their results must be known. When ask returns, calls that still wait for a connection are cancelled. A
// goroutine waits for the calls that were sent, until patience is over. Their connections stay open, because the reply
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
		if !l.background.Go(ask) { // after Close only this call of ask waits for it
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
	if rest == 0 || !l.background.Go(wait) { // after Close the caller itself waits
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
