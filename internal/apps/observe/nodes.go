package observe

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"slices"

	"github.com/lockbench/lockbench/internal/words"
)

// This file joins the captures of the nodes of a Redlock (https://redis.io/docs/latest/develop/clients/patterns/
// distributed-locks/). A client holds that lock while a majority of the nodes has its value. So a lease begins with the
// grant that completes the majority, and ends with the delete or the end of a TTL after which there is no majority. The
// times of these events are from the nodes' clocks, so differences between the clocks cause errors in the holds and
// waits.

// ReadNodes reconstructs the contention of Redlocks from one MONITOR stream per node.
func ReadNodes(ctx context.Context, nodes []io.Reader, options Options) (*Document, error) {
	if len(nodes) == 1 {
		return Read(ctx, nodes[0], options)
	}
	read := counted{}
	var observers []*observer
	interrupted := false
	seed := maphash.MakeSeed()
	for i, in := range nodes {
		o := newObserver(Options{Prefix: options.Prefix, Trace: true})
		o.marks.seed = seed // an owner has the same mark on all nodes
		s, stopped, err := o.read(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("capture %d: %w", i+1, err)
		}
		read.add(s.counted)
		observers = append(observers, o)
		interrupted = interrupted || stopped
	}
	all, err := join(observers)
	if err != nil {
		return nil, err
	}
	if !options.Trace {
		all.journal = nil
	}
	d := all.document(read, options)
	d.Capture.Nodes = len(nodes)
	d.noteNodes()
	d.Interrupted = interrupted
	return d, nil
}

// join adds the figures of all nodes to those of the first node. It then replaces the leases and waits of each lock
// with those of the Redlock (see decide).
func join(nodes []*observer) (*observer, error) {
	all := nodes[0]
	votes := map[id][]arrival{}
	for n, o := range nodes {
		if o.foldedN > 0 || o.journal.dropped > 0 {
			return nil, fmt.Errorf("capture %d has more than %d keys or %d waits, the most that lockbench can join: "+
				"cut all captures to a shorter time", n+1, mostKeys, mostArrivals)
		}
		for _, k := range o.keys.all {
			o.close(k)
		}
		for _, a := range o.journal.arrivals {
			votes[a.of.id] = append(votes[a.of.id], a)
		}
		if n > 0 {
			all.include(o)
		}
	}
	all.journal.arrivals = nil
	for of, k := range all.keys.all {
		if len(votes[of]) > 0 && all.keys.isLock(k) {
			k.lock.decide(votes[of], len(nodes), all.now)
		}
	}
	return all, nil
}

// include adds the keys and figures of other, the capture of another node.
func (o *observer) include(other *observer) {
	o.first, o.now = min(o.first, other.first), max(o.now, other.now)
	o.backwards += other.backwards
	o.journal.longest = max(o.journal.longest, other.journal.longest)
	o.caches.include(other.caches)
	o.unclear.include(other.unclear)
	for of, k := range other.keys.all {
		if mine := o.keys.all[of]; mine != nil {
			mine.lock.figures.add(&k.lock.figures)
			continue
		}
		o.keys.all[of] = k
		k.place = o.keys.used.PushBack(k)
		k.lock.journal = o.journal
	}
}

// decide replaces the leases and waits on single nodes with those of the Redlock, which a majority of the nodes
// granted. A vote is an owner's lease on one node, or an owner's wait on one node that led to no lease.
func (l *lock) decide(votes []arrival, nodes int, end int64) {
	f := &l.figures
	f.Tries = (f.Tries + int64(nodes)/2) / int64(nodes) // one try of a client is one try at each node
	f.Acquisitions, f.Releases, f.GaveUp, f.TriedOnce, f.Open = 0, 0, 0, 0, 0
	f.holds, f.waits, f.gaps, f.heldUS, f.waitedUS = durations{}, durations{}, durations{}, 0, 0
	byOwner := map[mark][]arrival{}
	for _, v := range votes {
		byOwner[v.owner] = append(byOwner[v.owner], v)
	}
	var leases []term
	for _, mine := range byOwner {
		held, wait := elect(mine, nodes/2+1, end)
		leases = append(leases, held...)
		if wait != nil {
			l.unheard(*wait, end)
		}
	}
	slices.SortFunc(leases, func(a, b term) int { return cmp.Compare(a.from, b.from) })
	free := int64(0) // the end of the last lease
	for _, t := range leases {
		l.Acquisitions++
		l.waits.end(t.from - t.asked)
		l.waitedUS += t.from - t.asked
		l.heldUS += t.to - t.from
		if free > t.asked && t.from >= free {
			l.gaps.end(t.from - free)
		}
		hold := t.to - t.from
		if t.open {
			l.holds.stay(hold)
			hold = -1
		} else {
			l.holds.end(hold)
			l.Releases++
			free = max(free, t.to)
		}
		l.addArrival(arrival{at: t.asked, end: t.to, hold: hold})
	}
}

// unheard counts a wait that did not end with a grant by a majority.
func (l *lock) unheard(wait arrival, end int64) {
	waited := wait.end - wait.at
	switch {
	case wait.once:
		l.TriedOnce++
	case end-wait.end > soon:
		l.GaveUp++
		l.waits.giveUp(waited)
	default:
		l.Open++
		l.waits.stay(end - wait.at)
		waited = end - wait.at
	}
	l.waitedUS += waited
	l.addArrival(arrival{at: wait.at, end: wait.end, hold: -1, once: wait.once})
}

// term is the time for which an owner had its value on a majority of the nodes. Its times are in µs.
type term struct {
	asked, from, to int64
	open            bool // the lease had not ended at the end of the capture
}

// elect returns the leases of one owner. It also returns the wait after the owner's last lease, or nil if there is no
// such wait. end is the end of the capture, in µs.
func elect(votes []arrival, majority int, end int64) (leases []term, wait *arrival) {
	type event struct {
		at     int64
		begins bool
	}
	var events []event
	for _, v := range votes {
		if v.granted == 0 {
			continue
		}
		events = append(events, event{v.granted, true})
		if over := v.granted + v.hold; v.hold >= 0 {
			events = append(events, event{over, false})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	has, since := 0, int64(0) // the number of nodes with the value, and the end of the last lease
	for _, e := range events {
		switch {
		case e.begins:
			if has++; has == majority {
				asked := e.at
				for _, v := range votes {
					if v.at >= since && v.at < asked {
						asked = v.at
					}
				}
				leases = append(leases, term{asked: asked, from: e.at, to: end, open: true})
			}
		default:
			if has--; has == majority-1 {
				leases[len(leases)-1].to, leases[len(leases)-1].open = e.at, false
				since = e.at
			}
		}
	}
	if has >= majority {
		return leases, nil
	}
	for _, v := range votes {
		switch {
		case v.at < since || since > 0 && v.granted > 0 && v.granted <= since:
			continue
		case wait == nil:
			wait = &v
			wait.once = v.once && v.granted == 0
		default:
			wait.at, wait.end = min(wait.at, v.at), max(wait.end, v.end)
			wait.once = wait.once && v.once && v.granted == 0
		}
	}
	return leases, wait
}

// noteNodes adds a finding if the captures do not seem to be of one Redlock.
func (d *Document) noteNodes() {
	if d.All.Acquisitions == 0 && d.All.Tries > 0 {
		d.Findings = append(d.Findings, Finding{Says: fmt.Sprintf("no value was on %d of %s at the same time: these are "+
			"not the nodes of one Redlock, or the captures cover different times",
			d.Capture.Nodes/2+1, words.Count(d.Capture.Nodes, "node"))})
	}
}
