package measure

import "time"

// Outcome is how a wait ended.
type Outcome int

// These are the ways in which a wait can end.
const (
	Granted  Outcome = iota // with a lease, the client's own or a shared one of another client
	TimedOut                // at its timeout, or because a try-lock found the lock held
	Stopped                 // because the run or the window was over
	Failed                  // with an error
)

// seen reports whether the wait ended with a lease or a timeout, so that its full length is known.
func (o Outcome) seen() bool { return o == Granted || o == TimedOut }

// Client is the record of one client. Only that client's goroutine calls its methods. The Recorder reads the fields
// guarded by the shard's lock at any time. It reads the other fields only after the client has returned.
type Client struct {
	window *Window
	shard  *shard

	granted  int64 // leases in the window; guarded by the shard's lock
	served   int64 // waits in the window that ended with another client's lease; guarded by the shard's lock
	timedOut int64 // guarded by the shard's lock

	spent   [phases]int64 // ns, clipped to the window
	open    bool          // a wait was under way when the window closed
	longest int64         // longest wait, ns
	cut     bool          // the end of the longest wait was not observed

	starts    int64 // open-loop starts in the window
	late      int64 // open-loop starts in the window that the generator delayed
	behind    int64 // open-loop starts in the window for which no client was free
	overtaken int64 // leases in the window granted while an earlier arrival was waiting
	bypassed  int64 // maximum number of later arrivals that acquired the lock during one wait

	waits  int64 // waits that were at least partly in the window
	last   int64 // start of the last wait in the window
	first  wait  // the first wait that began in the window
	before wait  // a wait that was under way when the window opened
}

// wait holds the length and the outcome of a wait that has ended or was cut off.
type wait struct {
	ns   int64
	end  Outcome
	seen bool
}

// phase is an activity of a client. A client is in exactly one phase at a time.
type phase int

const (
	waiting phase = iota
	holding
	releasing
	thinking
	phases
)

func (c *Client) account(p phase, from, to, end int64) {
	c.spent[p] += c.window.clip(from, to, end)
}

// Waited records a wait that ended at the instant to without a usable lease, because it timed out, was stopped or
// failed. The wait was due at due and began at from. bypassed is the number of later arrivals that acquired the lock
// during the wait. Use Acquired for a Granted wait.
func (c *Client) Waited(outcome Outcome, due, from, to, bypassed int64) {
	end := c.window.End()
	c.account(waiting, from, to, end)
	switch {
	case due >= end || to < c.window.Open:
		return
	case to >= end:
		c.open = true
		to, outcome = end, Stopped
	}
	c.bypassed = max(c.bypassed, bypassed)
	c.shard.mu.Lock()
	c.waited(due, from, to, outcome)
	if outcome == TimedOut {
		c.timedOut++
	}
	c.shard.mu.Unlock()
}

// Acquisition is the record of one acquisition. The instants are nanoseconds since the beginning of the run.
type Acquisition struct {
	Client, Key int
	Due         int64 // intended call of Acquire; in a closed loop equal to Asked
	Asked       int64 // Acquire called
	Granted     int64 // Acquire returned
	Released    int64 // Release called
	Done        int64 // Release returned
	Grant       Grant // returned by Key.Enter
	Hold        int64 // ns, as drawn
	Counted     bool  // it counts in the window's figures
}

// Acquired records a complete acquisition. Each of its durations counts with its full length if it ends in the window.
func (c *Client) Acquired(t Acquisition) {
	w, s, end := c.window, c.shard, c.window.End()
	c.account(waiting, t.Asked, t.Granted, end)
	c.account(holding, t.Granted, t.Released, end)
	c.account(releasing, t.Released, t.Done, end)
	if t.Done < w.Open || t.Due >= end {
		return
	}
	inside := t.Granted >= w.Open && t.Granted < end

	s.mu.Lock()
	switch {
	case inside && t.Counted:
		c.granted++
		c.waited(t.Due, t.Asked, t.Granted, Granted)
		if t.Grant.Handoff >= 0 {
			s.kinds[Handoff].record(t.Grant.Handoff)
			s.handoffs.record(t.Grant.Handoff)
		}
		if t.Grant.ReacquireDistance > 0 {
			s.reacquireDistances.record(t.Grant.ReacquireDistance)
		}
	case inside:
		c.waited(t.Due, t.Asked, t.Granted, Stopped)
	case t.Granted >= end:
		c.waited(t.Due, t.Asked, end, Stopped)
	}
	s.held += w.clip(t.Granted, t.Released, end)
	if t.Released >= w.Open && t.Released < end {
		s.kinds[Hold].record(t.Released - t.Granted)
		s.asked += float64(t.Hold)
		if t.Hold > 0 {
			s.overshoot.record(t.Released - t.Granted - t.Hold)
		}
	}
	if t.Done < end {
		s.kinds[Release].record(t.Done - t.Released)
	}
	s.mu.Unlock()

	switch {
	case inside && t.Counted:
		if t.Grant.Overtaken {
			c.overtaken++
		}
		c.bypassed = max(c.bypassed, t.Grant.Bypassed)
	case t.Granted >= end:
		c.open = true
		c.bypassed = max(c.bypassed, t.Grant.Bypassed)
	}
}

// Served records a wait that ended because another client of the same instance had done the work on behalf of both.
func (c *Client) Served(due, from, to int64) {
	end := c.window.End()
	c.account(waiting, from, to, end)
	if !c.window.Contains(to) {
		if due < end && to >= end {
			c.open = true
			c.shard.mu.Lock()
			c.waited(due, from, end, Stopped)
			c.shard.mu.Unlock()
		}
		return
	}
	c.shard.mu.Lock()
	c.waited(due, from, to, Granted)
	c.served++
	c.shard.mu.Unlock()
}

// lateness is how late a start may be and still count as punctual. Even on an idle machine, timers are about 1 ms late.
const lateness = int64(10 * time.Millisecond)

// Started records an open-loop start that was due at the instant due. The client had been free since the instant free
// and called Acquire at the instant asked.
func (c *Client) Started(due, free, asked int64) {
	if !c.window.Contains(asked) {
		return
	}
	c.starts++
	if free <= due {
		c.Took(Lateness, min(due, asked), asked)
	}
	switch {
	case asked-due <= lateness:
	case free > due+lateness:
		c.behind++
	default:
		c.late++
	}
}

// Thought records the time between a release and the next wait, which includes the harness's own work.
func (c *Client) Thought(from, to int64) { c.account(thinking, from, to, c.window.End()) }

// waited records a wait that was due at due and began at from, up to its end or to the last instant at which it was
// observed. The caller holds the shard's lock.
func (c *Client) waited(due, from, to int64, how Outcome) {
	ns := to - due
	if ns > c.longest {
		c.longest, c.cut = ns, how != Granted
	}
	c.waits++
	open := c.window.Open
	c.shard.waits.record(ns, open-due, how)
	if c.shard.service.ended != nil && (how.seen() || from < to) { // otherwise no client took the arrival in time
		c.shard.service.record(to-from, open-from, how)
	}
	c.shard.recent.of(how).record(ns)
	if due < open {
		c.before = wait{ns, how, true}
		return
	}
	if !c.first.seen {
		c.first = wait{ns, how, true}
		c.last = open
	}
	if weight := due - c.last; weight > 0 {
		c.shard.byClient.of(how).weigh(ns, weight)
	}
	c.last = due
}

// starved reports whether the client had no acquisition in the window and a single wait, which was still open when the
// window closed.
func (c *Client) starved() bool { return c.granted+c.served == 0 && c.waits == 1 && c.open }
