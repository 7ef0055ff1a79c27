package handoff

import (
	"sync"
	"time"
)

// drift is how much the clocks of Redis and of this process may part: one part in
// a hundred, and what both lose by counting in whole milliseconds.
func drift(d time.Duration) time.Duration { return d/100 + 2*time.Millisecond }

const (
	// renewEvery is for how long one reading of Redis's clock is relied on while later
	// ones agree with it; drift makes more of it the older it is.
	renewEvery = 10 * time.Second
	// unseenFor is for how long it may be relied on while there is no later one: Redis's
	// clock may have been set meanwhile.
	unseenFor = beatLasts
)

// clock tells when, at the earliest, Redis's clock showed a time. It is kept right by
// the answers that carry Redis's time: each was made after its command was sent, and
// before it was received.
type clock struct {
	mu     sync.Mutex
	before time.Time // an instant of ours (monotonic) …
	server int64     // … and what Redis's clock showed later, in ms; 0 for never
	seen   time.Time // after which Redis's clock was last read
}

// learn takes what Redis's clock showed between two instants. What is known already
// stays if it tells more, is not old, and agrees: Redis's clock may be set.
func (c *clock) learn(before, received time.Time, server int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	age := before.Sub(c.before)
	if c.server == 0 || age > renewEvery || age+drift(age) > millis(server-c.server) || c.contradicted(received, server) {
		c.before, c.server = before, server
	}
	if before.After(c.seen) {
		c.seen = before
	}
}

// contradicted says that Redis's clock showed, before it was received, what it cannot have
// shown by then unless it has been set forward.
func (c *clock) contradicted(received time.Time, server int64) bool {
	passed := received.Sub(c.before)
	return millis(server-c.server) > passed+drift(passed)
}

// millis is that many milliseconds, as far as a Duration goes.
func millis(n int64) time.Duration {
	const most = int64(longest / time.Millisecond)
	return time.Duration(max(min(n, most), -most)) * time.Millisecond
}

// forget is for another server.
func (c *clock) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server = 0
}

// until is an instant at which Redis's clock surely does not show a later time than a
// grant's expiry; never more than its TTL after it was received.
func (c *clock) until(g grant, received time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	latest := received.Add(g.ttl())
	if c.server != 0 && c.contradicted(received, g.now) {
		c.server = 0
	}
	if c.server == 0 || received.Sub(c.seen) > unseenFor { // rely on nothing
		return received
	}
	ahead := millis(g.expiry - c.server)
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
