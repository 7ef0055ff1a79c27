package engine

import (
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/results"
)

// herd has all clients wait for one holder, who then lets go; again and
// again. Client 0 leads: it takes the lock, waits until all others have asked for
// it and have waited for a while, and releases. Whoever gets the lock next holds it
// for as long, so that all that the one release sets off can be seen; then
// everybody has its turn, and the next burst begins.
type herd struct {
	run       *run
	gathering time.Duration
	current   atomic.Pointer[burst]

	ended []burstSeen // the leader's
}

// burst is one release and what follows.
type burst struct {
	open    chan struct{} // closed once the leader has the lock
	over    chan struct{} // closed once next may be looked at
	next    *burst
	asked   atomic.Int64  // of the others
	left    atomic.Int64  // of the others, whose turn is still to come
	drained chan struct{} // closed when there are none
	taken   atomic.Bool   // by the first of them

	// Written by the first of the others before its turn is over.
	firstAt, drainAt int64
	settled          snapshot
	// Written by the leader.
	releasedAt int64
	before     snapshot
}

// burstSeen is a finished burst.
type burstSeen struct {
	first, drain         int64 // ns
	before, settled, end snapshot
}

func newHerd(r *run) *herd {
	if r.Workload.Burst == 0 {
		return nil
	}
	h := &herd{run: r, gathering: time.Duration(r.Workload.Burst)}
	h.current.Store(h.burst())
	return h
}

func (h *herd) burst() *burst {
	b := &burst{open: make(chan struct{}), over: make(chan struct{}), drained: make(chan struct{})}
	b.left.Store(int64(h.run.Workload.Clients - 1))
	return b
}

// wait returns when the client is to ask for the lock.
func (h *herd) wait(c *client) {
	if c.id == 0 {
		return
	}
	b := h.current.Load()
	if c.burst == b { // it has had its turn
		select {
		case <-b.over:
			b = b.next
		case <-h.run.control.acquire.Done():
			return
		}
	}
	c.burst = b
	select {
	case <-b.open:
		b.asked.Add(1)
	case <-h.run.control.acquire.Done():
	}
}

// granted is called with the lock in hand.
func (h *herd) granted(c *client, at int64) {
	b := h.current.Load()
	switch {
	case c.id == 0:
		close(b.open)
		for b.asked.Load() < int64(h.run.Workload.Clients-1) && !h.run.control.stopping.Load() {
			c.sleep(time.Millisecond)
		}
		c.sleep(h.gathering)
		b.before = *h.run.snapshot(h.run.control.release)
		b.releasedAt = h.run.clock.Now()
	case b.taken.CompareAndSwap(false, true):
		b.firstAt = at
		c.sleep(h.gathering)
		b.settled = *h.run.snapshot(h.run.control.release)
		b.drainAt = h.run.clock.Now()
	}
}

// done is called when a client's turn is over, however it ended.
func (h *herd) done(c *client) {
	b := h.current.Load()
	if c.id != 0 {
		if b.left.Add(-1) == 0 {
			close(b.drained)
		}
		return
	}
	select {
	case <-b.open:
	default:
		return // it has not got the lock: the run is over, or there was an error
	}
	select {
	case <-b.drained:
	case <-h.run.control.acquire.Done(): // who has not begun never will
		return
	}
	end := h.run.clock.Now()
	if b.taken.Load() && h.run.window.Contains(b.releasedAt) && h.run.window.Contains(end) {
		h.ended = append(h.ended, burstSeen{
			first: b.firstAt - b.releasedAt, drain: end - b.drainAt,
			before: b.before, settled: b.settled, end: *h.run.snapshot(h.run.control.release),
		})
	}
	b.next = h.burst()
	h.current.Store(b.next)
	close(b.over)
}

// summary is what all bursts have in common; nil without a herd.
func (h *herd) summary() (*results.Herd, error) {
	if h == nil {
		return nil, nil
	}
	s := &results.Herd{Bursts: int64(len(h.ended))}
	var first, drain []int64
	var attempts, wakes, commands, drainCommands mean
	for _, b := range h.ended {
		first, drain = append(first, b.first), append(drain, b.drain)
		attempts.add(float64(b.settled.probes.Attempts - b.before.probes.Attempts))
		wakes.add(float64(b.settled.probes.Useful + b.settled.probes.Futile - b.before.probes.Useful - b.before.probes.Futile))
		if b.before.server == nil || b.settled.server == nil || b.end.server == nil {
			continue
		}
		if d := b.settled.server.ClientsSince(*b.before.server, 1); d.Calls != nil {
			commands.add(float64(*d.Calls))
		}
		d := b.end.server.ClientsSince(*b.settled.server, b.end.grants-b.settled.grants)
		if d.Calls != nil && d.Acquisitions > 0 {
			drainCommands.add(float64(*d.Calls) / float64(d.Acquisitions))
		}
		if p := d.CPUPercent(); p != nil && (s.PeakCPU == nil || *p > *s.PeakCPU) {
			s.PeakCPU = p
		}
	}
	var err error
	if s.FirstHandoff, err = measure.Describe(first); err != nil {
		return nil, err
	}
	if s.Drain, err = measure.Describe(drain); err != nil {
		return nil, err
	}
	s.Commands, s.DrainCommands = commands.value(), drainCommands.value()
	if !h.run.info.BlackBox {
		s.Attempts, s.WakeUps = attempts.value(), wakes.value()
	}
	return s, nil
}

// mean is an average under way.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v float64) { m.sum += v; m.n++ }

// value is nil without any.
func (m *mean) value() *float64 {
	if m.n == 0 {
		return nil
	}
	v := m.sum / float64(m.n)
	return &v
}
