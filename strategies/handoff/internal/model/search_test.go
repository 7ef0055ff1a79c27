package model

import (
	"fmt"
	"slices"
	"testing"
)

// broken says which invariant a state breaks, "" if none.
func (m model) broken() string {
	holders := 0
	for _, cl := range m.clients {
		if cl.phase == holding && m.now < cl.until {
			holders++
		}
	}
	if holders > 1 {
		return "two owners"
	}
	for i, id := range m.queue {
		if id != 0 && (id == m.owner || slices.Contains(m.queue[:i], id)) {
			return "queued twice"
		}
	}
	for c, cl := range m.clients {
		for _, other := range m.clients[:c] {
			if cl.fence != 0 && cl.fence == other.fence {
				return "two had the same token"
			}
		}
	}
	if m.wasted {
		return "the dead are granted the lock"
	}
	return ""
}

// stuck says how a state in which nothing moves any more, but by time or by its
// clients' will, keeps somebody waiting.
func (m model) stuck() string {
	for _, pr := range m.procs {
		if pr.stopped && !pr.dead || m.refused || m.closed {
			return ""
		}
	}
	for _, cl := range m.clients {
		if cl.phase != waiting || m.procs[cl.id.proc()].dead {
			continue
		}
		excused := m.delayed && m.now <= m.procs[cl.id.proc()].known
		switch {
		case m.owner == cl.id:
			return "granted, and not told"
		case !slices.Contains(m.queue[:], cl.id):
			return "waits and is not queued"
		case m.owner == 0 && !excused:
			return "the lock is free and nobody gets it"
		case m.owner != 0 && m.now > m.expiry:
			return "the lease has run out and nobody looks"
		case m.owner != 0 && m.heldByNobody():
			return "the lock is held by nobody"
		}
	}
	return ""
}

func (m model) heldByNobody() bool {
	cl := m.clients[m.owner.client()]
	return !m.procs[m.owner.proc()].dead && (cl.id != m.owner || cl.phase != holding)
}

// search visits every state that can be reached and returns the first fault, with
// the number of states seen.
func search(f faults, planted mistake) (fault string, states int) {
	first := start(f)
	seen := map[model]struct{}{first: {}}
	todo := []model{first}
	for len(todo) > 0 {
		m := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if fault := m.broken(); fault != "" {
			return fault, len(seen)
		}
		moves := false
		m.next(planted, func(n model, progress bool) {
			moves = moves || progress
			if _, ok := seen[n]; !ok && !n.full {
				seen[n] = struct{}{}
				todo = append(todo, n)
			}
		})
		if !moves {
			if fault := m.stuck(); fault != "" {
				return fmt.Sprintf("%s: %+v", fault, m), len(seen)
			}
		}
	}
	return "", len(seen)
}

// A break between any two steps, and so on; a lease lasts two ticks.
var (
	calm      = faults{ticks: 3}
	cancels   = faults{cancels: 1, ticks: 2}
	breaks    = faults{breaks: 1, ticks: 2}
	deaths    = faults{deaths: 1, ticks: 3}
	stops     = faults{stops: 1, ticks: 3}
	refusals  = faults{refusals: 2, ticks: 3}
	closures  = faults{closures: 2, ticks: 2}
	failovers = faults{failovers: 1}
	cancelled = faults{closures: 2, cancels: 1}
)

func TestModelIsSafeAndLive(t *testing.T) {
	for _, f := range []faults{calm, cancels, breaks, deaths, stops, refusals, closures, failovers, cancelled} {
		t.Run(fmt.Sprintf("%+v", f), func(t *testing.T) {
			t.Parallel()
			fault, states := search(f, noMistake)
			if fault != "" {
				t.Error(fault)
			}
			t.Logf("%d states", states)
		})
	}
}

// A search that finds nothing must have been able to.
func TestModelFindsPlantedMistakes(t *testing.T) {
	for _, test := range []struct {
		planted mistake
		faults  faults
	}{
		{noAskAfterBreak, breaks},
		{validFromReceipt, calm},
		{cancelOnlyQueue, cancels},
		{repeatedEnqueue, breaks},
		{grantToTheDead, deaths},
		{grantToTheSilent, stops},
		{keepUnknown, breaks},
		{noChecker, deaths},
		{blindPush, calm},
		{lateEnqueue, breaks},
		{popBeforePublish, refusals},
		{asItWas, closures},
		{tellBeforeWrite, failovers},
		{replicatedTold, failovers},
		{offeredAgain, failovers},
		{refusedIsPaid, cancelled},
	} {
		t.Run(string(test.planted), func(t *testing.T) {
			t.Parallel()
			found, states := search(test.faults, test.planted)
			if found == "" {
				t.Error("it is not found")
			}
			t.Logf("%.50s (%d states)", found, states)
		})
	}
}
