package handoff

import (
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/handoff/internal/line"
)

// call is a script whose answer somebody waits for.
type call struct {
	home *home
	lock string
	sent time.Time
	done chan struct{} // capacity 1

	connection int64 // on which it was sent
	underWay   bool  // it may still be answered
	unanswered bool  // it was sent, and what Redis did is not known
	again      bool  // it was sent before, and what Redis did then is not known

	answer answer
	grant  grant // if the answer is one to the caller
	err    error
}

// Answer notes what was said, on the Line's goroutine.
func (c *call) Answer(reply line.Reply) {
	if c.err = reply.Err; c.err == nil {
		c.answer = parseAnswer(reply.Text)
		c.home.clock.learn(c.sent, time.Now(), c.answer.now)
		if c.answer.status == 'G' {
			c.grant, _ = parseGrant(c.answer.grant)
		} else {
			c.home.passed(c.lock, c.answer)
		}
		c.answer.grant = nil // it is only valid now
	}
	c.done <- struct{}{}
}

// do runs a script that may be run twice, until it is answered or ctx ends. What it
// did then is not known; if it is under way the call may still hear of it.
func (h *home) do(ctx context.Context, s *script, lock string, args ...string) (*call, error) {
	c := &call{home: h, lock: lock, done: make(chan struct{}, 1)}
	for {
		if err := h.send(ctx, c, s, args); err != nil {
			c.unanswered = c.again
			return c, err
		}
		h.line.Flush()
		c.underWay = true
		select {
		case <-c.done:
			c.underWay = false
		case <-ctx.Done():
			c.unanswered = true
			return c, ctx.Err()
		}
		switch {
		case c.err == nil && c.answer.status == 'O':
			if err := h.beatAnew(); err != nil {
				return c, err
			}
		case c.err == nil:
			return c, nil
		case errors.Is(c.err, line.ErrBroken):
			c.again = true
		case transient(c.err):
			h.mu.Lock()
			h.hangUp(c.err)
			h.mu.Unlock()
		case unknown(c.err):
			h.load(s)
		default:
			c.unanswered = c.again
			return c, c.err
		}
	}
}

// send puts the command once there is a connection.
func (h *home) send(ctx context.Context, c *call, s *script, args []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		if h.closed {
			return strategies.ErrClosed
		}
		h.start()
		now := time.Now()
		if h.connection != 0 && (s == acquireScript || s == extendScript) { // which are for who beats
			h.live(now)
		}
		if c.sent, c.connection = now, h.connection; h.connection != 0 && h.run(c, s, c.lock, args...) {
			h.wake()
			return nil
		}
		if h.fault != nil {
			return h.fault
		}
		change := h.change
		h.mu.Unlock()
		var err error
		select {
		case <-change:
		case <-ctx.Done():
			err = ctx.Err()
		}
		h.mu.Lock()
		if err != nil {
			return err
		}
	}
}

// ready waits for a connection, and for all rights to have been tried on it.
func (h *home) ready(ctx context.Context) error {
	if _, err := h.do(ctx, probeScript, h.own()+":probe"); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fault
}
