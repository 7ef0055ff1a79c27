package redisson

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
)

// Line tells the waiters for a lock that it may be free.
type Line interface {
	// Open opens connections ahead of the first waiter.
	Open(ctx context.Context) error
	// Join returns once every later message to the topic reaches a waiter. After errMoved it may
	// succeed the next time.
	Join(ctx context.Context, topic Topic) (Place, error)
	// Close ends the subscriptions. Nobody may be waiting.
	Close() error
}

// Place is one waiter's place in a Line.
type Place interface {
	// Park sleeps until it is time to try: the waiter was woken, or the limit is over. It
	// returns an error only when ctx ends, the Line is closed, or by errMoved there is no place any
	// more; the caller must then call Leave.
	Park(ctx context.Context, limit time.Duration) error
	// Leave gives the place up. A wake-up that has not been used goes to the next waiter, and
	// with handOn one that was used in vain does too.
	Leave(handOn bool)
}

// Wait joins the line, parks for first if that is not 0, and tries; and parks between tries for as
// long as try says, until try succeeds, fails, or ctx ends. After a brief success the next waiter
// looks how long it has to wait now: perhaps no message tells it of the end.
func Wait(ctx context.Context, line Line, topic Topic, probe *strategies.Probe, first time.Duration, brief bool,
	try func() (taken bool, left time.Duration, err error),
) error {
	place, err := join(ctx, line, topic)
	if err != nil {
		return err
	}
	for parks, left := first > 0, first; ; parks = true {
		if parks {
			if err := place.Park(ctx, left); err != nil {
				place.Leave(false)
				if !errors.Is(err, errMoved) {
					return fmt.Errorf("wait on %q: %w", topic.Channel, err)
				}
				if place, err = join(ctx, line, topic); err != nil {
					return err
				}
			}
		}
		var taken bool
		taken, left, err = try()
		if parks {
			probe.Wake(taken)
		}
		if taken || err != nil {
			// A waiter that fails may have used a wake-up that another needs.
			place.Leave(err != nil || brief)
			return err
		}
	}
}

// joinings is how often a waiter tries to find the node that has its channel now.
const joinings = 10

// join joins the line, also if the topic is moving to another node.
func join(ctx context.Context, line Line, topic Topic) (Place, error) {
	for failures := 1; ; failures++ {
		place, err := line.Join(ctx, topic)
		if err == nil {
			return place, nil
		}
		if !errors.Is(err, errMoved) || failures == joinings {
			return nil, fmt.Errorf("subscribe to %q: %w", topic.Channel, indeterminate.Because(ctx, err))
		}
		pause.Rest(ctx.Done(), failures)
	}
}

// waiter is a Place on a Subscriber.
type waiter struct {
	subscriber *Subscriber
	channel    *channel
	place      *list.Element // among the parked; nil while awake
	woken      chan struct{} // capacity 1; a woken waiter is no longer parked
	timer      *time.Timer
}

func (w *waiter) Park(ctx context.Context, limit time.Duration) error {
	s := w.subscriber
	s.mu.Lock()
	asleep := w.channel.park(w)
	s.mu.Unlock()
	if !asleep {
		return nil
	}
	if w.timer == nil {
		w.timer = time.NewTimer(limit)
	} else {
		w.timer.Reset(limit)
	}
	defer w.timer.Stop()
	select {
	case <-w.woken:
		return nil
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	case <-ctx.Done():
		return strategies.WaitEnded(ctx)
	case <-w.timer.C:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.channel.unpark(w) {
		<-w.woken // woken in the same moment: the next try serves both
	}
	return nil
}

func (w *waiter) Leave(handOn bool) {
	s, c := w.subscriber, w.channel
	s.mu.Lock()
	defer s.mu.Unlock()
	c.leave(w, handOn)
	if c.members == 0 && s.channels[c.name] == c {
		s.look(c.name)
	}
}
