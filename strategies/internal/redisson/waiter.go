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

// Notifier wakes the waiters for a lock when the lock may be free.
type Notifier interface {
	// Open opens connections before the first waiter comes.
	Open(ctx context.Context) error
	// Join subscribes to the topic and returns when the subscription is confirmed, so that no later message is missed, or
	// when the limit is over. In the second case Park returns as soon as the subscription is confirmed. After errMoved the
	// next Join may succeed.
	Join(ctx context.Context, topic Topic, limit time.Duration) (Registration, error)
	// Close ends the subscriptions. It must not be called while a waiter is parked.
	Close() error
}

// Registration is one waiter's registration with a Notifier.
type Registration interface {
	// Park sleeps until the waiter must try again, because it was woken or the limit is over. It returns an error only if
	// ctx ends, the Notifier is closed, the subscription was refused after Join had returned, or the registration has
	// ended (errMoved). After an error the caller must call Leave.
	Park(ctx context.Context, limit time.Duration) error
	// Leave ends the registration. An unused wake-up goes to the next waiter. If handOn is true, the next waiter is woken
	// in any case.
	Leave(handOn bool)
}

// Waiting describes how one waiter waits.
type Waiting struct {
	Notifier Notifier
	Topic    Topic
	Probe    *strategies.Probe
	// Left is the longest sleep of the waiter before its next try, even if the subscription is not confirmed.
	Left  time.Duration
	Blind bool // the waiter parks after subscribing, without another try
	// Brief is true if the waiter's lease may end earlier than other waiters expect. The next waiter is then woken to
	// compute its sleep again, because no message announces that a lease has expired.
	Brief bool
}

// Wait joins the Notifier and calls try until it succeeds or fails, or ctx ends. Between tries it parks for at most the
// time that try returns.
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
			// A waiter that fails may have used a wake-up that another waiter needs.
			place.Leave(err != nil || w.Brief)
			return err
		}
	}
}

// joinings is the number of times that a waiter tries to find the node that has its channel.
const joinings = 10

// join joins the Notifier. It tries again while the topic is moving to another node.
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
	place      *list.Element // its element in the list of parked waiters; nil while awake
	woken      chan struct{} // capacity 1; a woken waiter is no longer parked
	timer      *time.Timer
	early      bool // Join has returned before the subscription was confirmed
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
		<-w.woken // woken at the same moment; the next try serves both purposes
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
