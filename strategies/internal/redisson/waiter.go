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
	// Open opens connections in advance, so that the first waiter does not wait for them.
	Open(ctx context.Context) error
	// Join subscribes to the topic and returns when the subscription is confirmed, so that the waiter misses no later
	// message. If this takes longer than limit, Join returns after limit, and Park then returns as soon as the
	// subscription is confirmed. After errMoved the next Join may succeed.
	Join(ctx context.Context, topic Topic, limit time.Duration) (Registration, error)
	// Close ends the subscriptions. It must not be called while a waiter is parked.
	Close() error
}

// Registration is the membership of one waiter in a Notifier, from Join until Leave.
type Registration interface {
	// Park sleeps until the waiter is woken or the limit is over; the waiter must then try again. Park returns an error
	// only if ctx ends, the Notifier is closed, the subscription was refused after Join had returned, or the registration
	// has ended (errMoved). After an error the caller must call Leave.
	Park(ctx context.Context, limit time.Duration) error
	// Leave ends the registration. If handOn is true, or if the waiter was woken but has not tried since, the next waiter
	// is woken.
	Leave(handOn bool)
}

// Waiting describes how one waiter waits for a lock.
type Waiting struct {
	Notifier Notifier
	Topic    Topic
	Probe    *strategies.Probe
	// Left is the longest time for which the waiter sleeps before its next try, even if the subscription is not confirmed.
	Left  time.Duration
	Blind bool // the waiter parks after subscribing, without another try
	// Brief is true if the waiter's lease may end earlier than other waiters expect. The next waiter is then woken to
	// compute its sleep again, because no message announces that a lease has expired.
	Brief bool
}

// Wait joins the Notifier and calls try until try takes the lock or returns an error, or ctx ends. Between two tries,
// Wait parks for at most the duration left that the last try returned.
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
			// A waiter that ends with an error may have used up a wake-up that another waiter needs.
			place.Leave(err != nil || w.Brief)
			return err
		}
	}
}

// joinings is the number of times that a waiter tries to join while its channel is moving to another node. After that
// the waiter's Acquire fails.
const joinings = 10

// join joins the Notifier. If the topic's channel is moving to another node, it tries again, up to joinings times.
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

// waiter is the Registration of one waiter with a Subscriber.
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
