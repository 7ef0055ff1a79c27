package handoff

import (
	"testing"
	"time"
)

// reality is a clock of Redis that is set now and then, seen through round trips of 2 ms.
type reality struct {
	*testing.T
	clock clock
	now   time.Time
	ahead time.Duration // of Redis's clock
}

func newReality(t *testing.T) *reality { return &reality{T: t, now: time.Now()} }

func (r *reality) server() int64 { return r.now.Add(r.ahead).UnixMilli() }

// ask learns what time it is, by a round trip.
func (r *reality) ask() {
	before := r.now
	r.now = r.now.Add(time.Millisecond)
	server := r.server()
	r.now = r.now.Add(time.Millisecond)
	r.clock.learn(before, r.now, server)
}

// wait asks once in a second, as heartbeats do.
func (r *reality) wait(length time.Duration) {
	for end := r.now.Add(length); r.now.Before(end); r.now = r.now.Add(time.Second) {
		r.ask()
	}
}

// grants has Redis grant the lock, and returns when that is over in truth and what is
// believed of it when it is received so much later.
func (r *reality) grants(ttl, delay time.Duration) (over, believed time.Time) {
	g := grant{now: r.server()}
	g.expiry = g.now + ttl.Milliseconds()
	over = r.now.Add(ttl)
	r.now = r.now.Add(delay)
	return over, r.clock.until(g, r.now)
}

// A grant that comes in time is a lease for nearly all of its TTL, for as long as the
// process beats; one that comes late is over when it is over for Redis. That is so when
// Redis's clock has been set, too, forward or back.
func TestGrantsAreBelievedForTheirTTL(t *testing.T) {
	const ttl = 5 * time.Second
	for _, step := range []time.Duration{0, 30 * time.Second, -30 * time.Second, 4 * time.Second, time.Hour} {
		for _, before := range []time.Duration{time.Second, time.Hour} {
			for _, delay := range []time.Duration{0, time.Second, 2500 * time.Millisecond, 4 * time.Second, 20 * time.Second} {
				for _, asked := range []bool{false, true} { // since the clock was set
					r := newReality(t)
					r.wait(before)
					r.ahead += step
					if asked {
						r.ask()
					}
					over, believed := r.grants(ttl, delay)
					if believed.After(over) && believed.After(r.now) {
						t.Errorf("set by %v after %v, asked: %v, told after %v: believed for %v too long",
							step, before, asked, delay, believed.Sub(over))
					}
					r.ask()
					over, believed = r.grants(ttl, 10*time.Millisecond)
					if left := over.Sub(believed); left > ttl/10 {
						t.Errorf("set by %v after %v: afterwards a grant that was told at once is believed for %v too short", step, before, left)
					}
				}
			}
		}
	}
}

// What was learnt long ago is not relied on.
func TestOldClockIsNotReliedOn(t *testing.T) {
	r := newReality(t)
	r.ask()
	r.now = r.now.Add(time.Minute)
	r.ahead = 30 * time.Second
	if _, believed := r.grants(time.Minute, 40*time.Second); believed.After(r.now) {
		t.Errorf("after a minute without a word from Redis a grant is believed for %v", believed.Sub(r.now))
	}
}
