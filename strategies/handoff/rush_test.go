package handoff

import (
	"testing"
	"time"
)

// What lingers is sent in time even if its process does nothing else; before the rush
// nothing did.
func TestLingerEnds(t *testing.T) {
	c := newCrowd(t, 0, time.Hour)
	h := c.home
	lingers := func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.lingering
	}
	if lingers() {
		t.Error("a request lingers outside a rush")
	}
	c.join(1)
	c.eventually("it lingers", lingers)
	h.late.Reset(0)
	c.eventually("it is queued", func() bool { return c.redis.LLen(t.Context(), crowdedKey).Val() == 3 && !lingers() })
	c.release(c.first)
	c.rest(c.next(0, c.first), 1)
}

// A rush takes four turns that come soon after each other.
func TestRush(t *testing.T) {
	type turns struct {
		after time.Duration
		of    int
	}
	const linger = 100 * time.Millisecond
	for _, test := range []struct {
		name  string
		turns []turns
		after time.Duration
		want  bool
	}{
		{"three", []turns{{0, 1}, {linger, 1}, {linger, 1}}, 0, false},
		{"four", []turns{{0, 1}, {linger, 1}, {linger, 1}, {linger, 1}}, linger, true},
		{"and then none", []turns{{0, 1}, {linger, 1}, {linger, 1}, {linger, 1}}, linger + 1, false},
		{"with a pause", []turns{{0, 1}, {linger, 1}, {linger + 1, 1}, {linger, 1}}, 0, false},
		{"a party", []turns{{0, 5}}, 5 * linger, true},
		{"after a party", []turns{{0, 3}, {3 * linger, 1}}, linger, true},
		{"long after a party", []turns{{0, 3}, {3*linger + 1, 1}}, 0, false},
	} {
		h := &home{linger: linger}
		l, now := &lock{}, time.Now()
		for _, turn := range test.turns {
			now = now.Add(turn.after)
			l.turned(now, h.linger, turn.of)
		}
		if got := h.lingers(l, now.Add(test.after)); got != test.want {
			t.Errorf("%s: a rush: %v, want %v", test.name, got, test.want)
		}
	}
}
