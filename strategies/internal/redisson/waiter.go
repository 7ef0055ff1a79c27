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

// Notifier tells the waiters for a lock that it may be free.
type Notifier interface {
	// Open opens connections ahead of the first waiter.
	Open(ctx context.Context) error
	// Join returns once every later message to the topic reaches a waiter, or when the limit is over:
	// Park then returns once it is so. After errMoved Join may succeed the next time.
	Join(ctx context.Context, topic Topic, limit time.Duration) (Registration, error)
	// Close ends the subscriptions. Nobody may be waiting.
	Close() error
}

// Registration is one waiter's registration with a Notifier.
type Registration interface {
	// Park sleeps until it is time to try: the waiter was woken, or the limit is over. It
	// returns an error only when ctx ends, the Notifier is closed, the subscription was refused after Join
	// had returned, or by errMoved there is no place any more; the caller must then call Leave.
	Park(ctx context.Context, limit time.Duration) error
	// Leave gives the place up. A wake-up that has not been used goes to the next waiter, and
	// with handOn one that was used in vain does too.
	Leave(handOn bool)
}

// Waiting is how one waiter waits.
type Waiting struct {
	Notifier Notifier
	Topic    Topic
	Probe    *strategies.Probe
	// Left is how long the waiter sleeps at most before its next try, also if the subscription is not
	// confirmed.
	Left  time.Duration
	Blind bool // it does not try once it has subscribed
	// Brief is a lease after which the next waiter looks how long it has to wait: perhaps no message
	// tells it of the end.
	Brief bool
}

// Wait joins the Notifier and tries, and parks between tries for as long as try says, until try succeeds,
// fails, or ctx ends.
func (w Waiting) Wait(ctx context.Context, try func() (taken bool, left time.Duration, err error)) error {
	left := w.Left
	place, err := w.join(ctx, left)
	if err != nil {
		return err
	}
	for parks := w.Blind; ; parks = true {
		if parks {
			if err := place.Park(ctx, left); err != nil {
				place.Leave(false)
				if !errors.Is(err, errMoved) {
					return fmt.Errorf("wait on %q: %w", w.Topic.Channel, err)
				}
				if place, err = w.join(ctx, left); err != nil {
					return err
				}
			}
		}
		var taken bool
		taken, left, err = try()
		if parks {
			w.Probe.Wake(taken)
		}
		if taken || err != nil {
			// A waiter that fails may have used a wake-up that another needs.
			place.Leave(err != nil || w.Brief)
			return err
		}
	}
}

// joinings is how often a waiter tries to find the node that has its channel now.
const joinings = 10

// join joins the Notifier, also if the topic is moving to another node.
func (w Waiting) join(ctx context.Context, limit time.Duration) (Registration, error) {
	for failures := 1; ; failures++ {
		place, err := w.Notifier.Join(ctx, w.Topic, limit)
		if err == nil {
			return place, nil
		}
		if !errors.Is(err, errMoved) || failures == joinings {
			return nil, fmt.Errorf("subscribe to %q: %w", w.Topic.Channel, indeterminate.Because(ctx, err))
		}
		pause.Rest(ctx.Done(), failures)
	}
}

// waiter is a Registration with a Subscriber.
type waiter struct {
	subscriber *Subscriber
	channel    *channel
	place      *list.Element // among the parked; nil while awake
	woken      chan struct{} // capacity 1; a woken waiter is no longer parked
	timer      *time.Timer
	early      bool // its last try was before the subscription
}

func (w *waiter) Park(ctx context.Context, limit time.Duration) error {
	s := w.subscriber
	s.mu.Lock()
	asleep := w.channel.park(w)
	refused := w.channel.err
	s.mu.Unlock()
	if !asleep || refused != nil {
		return refused
	}
	if w.timer == nil {
		w.timer = time.NewTimer(limit)
	} else {
		w.timer.Reset(limit)
	}
	defer w.timer.Stop()
	select {
	case <-w.woken:
		s.mu.Lock()
		defer s.mu.Unlock()
		return w.channel.err
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
	s.left(c)
}
