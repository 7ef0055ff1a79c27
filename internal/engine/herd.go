package engine

import (
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/results"
)

// herd makes all clients wait for one holder, which then releases, and repeats this. Client 0, the leader, acquires the
// lock, waits until all other clients have requested the lock, keeps it for the gathering time after that, and
// releases. The next holder also keeps the lock for the gathering time, so that all effects of the leader's release can
// be observed. When every client has had the lock, the next burst begins.
type herd struct {
	run       *run
	gathering time.Duration
	current   atomic.Pointer[burst]

	ended []burstSeen // written by the leader
}

// burst is one release by the leader and its effects.
type burst struct {
	open    chan struct{} // closed once the leader has the lock
	over    chan struct{} // closed once next is set
	next    *burst
	asked   atomic.Int64  // other clients that have requested the lock
	left    atomic.Int64  // other clients that have not finished their turn
	drained chan struct{} // closed when left is 0
	taken   atomic.Bool   // set by the first other client that acquires the lock

	last atomic.Int64 // the last instant at which another client acquired the lock

	// Of the clients other than the leader, the first one to acquire the lock writes the next fields, before its turn
	// ends.
	firstAt, drainAt int64
	settled          snapshot
	// The leader writes the following two fields.
	releasedAt int64
	before     snapshot
}

// burstSeen holds the times and the counters of a finished burst.
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

// wait blocks until the client should request the lock.
func (h *herd) wait(c *client) {
	if c.id == 0 {
		return
	}
	b := h.current.Load()
	if c.burst == b { // the client has had its turn in this burst
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

// granted is called when a client has acquired the lock. It makes the leader keep the lock until all other clients have
// requested it and the gathering time has passed. It makes the next holder keep the lock for the gathering time.
func (h *herd) granted(c *client, at int64) {
	b := h.current.Load()
	switch {
	case c.id == 0:
		close(b.open)
		for b.asked.Load() < int64(h.run.Workload.Clients-1) && !h.run.control.stopping.Load() {
			c.sleep(time.Millisecond)
		}
		c.sleep(h.gathering)
		return
	case b.taken.CompareAndSwap(false, true):
		b.firstAt, c.first = at, true
		c.sleep(h.gathering)
	}
	for last := b.last.Load(); at > last && !b.last.CompareAndSwap(last, at); last = b.last.Load() {
	}
}

// releasing is called just before the client releases. For the leader and the next holder it takes a snapshot, so that
// commands sent before their releases do not count as effects of these releases.
func (h *herd) releasing(c *client) {
	b := h.current.Load()
	switch {
	case c.id == 0:
		b.before = *h.run.snapshot(h.run.control.release)
		b.releasedAt = h.run.clock.Now()
	case c.first:
		c.first = false
		b.settled = *h.run.snapshot(h.run.control.release)
		b.drainAt = h.run.clock.Now()
	}
}

// done is called when a client's turn is over, with or without a lease. For the leader, done waits until the turns of
// all other clients are over, and then begins the next burst.
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
		return // the leader did not acquire the lock: the run is over or an error occurred
	}
	select {
	case <-b.drained:
	case <-h.run.control.acquire.Done(): // clients that have not requested the lock no longer do so
		return
	}
	end := h.run.clock.Now()
	if b.taken.Load() && h.run.window.Contains(b.releasedAt) && h.run.window.Contains(end) {
		h.ended = append(h.ended, burstSeen{
			first: b.firstAt - b.releasedAt, drain: max(0, b.last.Load()-b.drainAt),
			before: b.before, settled: b.settled, end: *h.run.snapshot(h.run.control.release),
		})
	}
	b.next = h.burst()
	h.current.Store(b.next)
	close(b.over)
}

// summary returns the figures of all bursts; nil without a herd.
func (h *herd) summary() *results.Herd {
	if h == nil {
		return nil
	}
	s := &results.Herd{Bursts: int64(len(h.ended))}
	var first, drain []int64
	var attempts, wakes, commands, drainCommands []float64
	for _, b := range h.ended {
		first, drain = append(first, b.first), append(drain, b.drain)
		attempts = append(attempts, float64(b.settled.probes.Attempts-b.before.probes.Attempts))
		wakes = append(wakes, float64(b.settled.probes.Useful+
			b.settled.probes.Futile-b.before.probes.Useful-b.before.probes.Futile))
		if b.before.server == nil || b.settled.server == nil || b.end.server == nil {
			continue
		}
		if d := b.settled.server.ClientsSince(*b.before.server, 1); d.Calls != nil {
			commands = append(commands, float64(*d.Calls))
		}
		d := b.end.server.ClientsSince(*b.settled.server, b.end.grants-b.settled.grants)
		if d.Calls != nil && d.Acquisitions > 0 {
			drainCommands = append(drainCommands, float64(*d.Calls)/float64(d.Acquisitions))
		}
		if p := d.CPUPercent(); p != nil && (s.PeakCPU == nil || *p > *s.PeakCPU) {
			s.PeakCPU = p
		}
	}
	s.FirstHandoff, s.Drain = measure.Describe(first), measure.Describe(drain)
	s.Commands, s.DrainCommands = mean(commands), mean(drainCommands)
	if !h.run.info.BlackBox {
		s.Attempts, s.WakeUps = mean(attempts), mean(wakes)
	}
	return s
}

// mean is the average of values; nil if there are none.
func mean(values []float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return new(sum / float64(len(values)))
}
