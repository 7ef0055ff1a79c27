package handoff

import (
	"sync"
	"time"
)

// drift is how much the clocks of Redis and of this process may part: one part in
// a hundred, and what both lose by counting in whole milliseconds.
func drift(d time.Duration) time.Duration { return d/100 + 2*time.Millisecond }

// clock tells when, at the earliest, Redis's clock showed a time. It is kept right by
// the answers that carry Redis's time: each was made after its command was sent.
type clock struct {
	mu     sync.Mutex
	before time.Time // an instant of ours (monotonic) …
	server int64     // … and what Redis's clock showed later, in ms; 0 for never
}

// learn takes what Redis's clock showed some time after before. What is known already
// stays if it tells more.
func (c *clock) learn(before time.Time, server int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == 0 || before.Sub(c.before)+drift(before.Sub(c.before)) > time.Duration(server-c.server)*time.Millisecond {
		c.before, c.server = before, server
	}
}

// forget is for another server.
func (c *clock) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server = 0
}

// until is an instant at which Redis's clock surely does not show a later time than
// server, in ms; never more than most after received.
func (c *clock) until(server int64, received time.Time, most time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	latest := received.Add(most)
	if c.server == 0 { // nothing is known: rely on nothing
		return received
	}
	ahead := time.Duration(server-c.server) * time.Millisecond
	at := c.before.Add(ahead - drift(max(ahead, 0)))
	if at.After(latest) {
		return latest
	}
	return at
}

// estimate is about what Redis's clock shows, in µs.
func (c *clock) estimate(now time.Time) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == 0 {
		return now.UnixMicro()
	}
	return 1000*c.server + now.Sub(c.before).Microseconds()
}
