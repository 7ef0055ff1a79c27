package redisson_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
)

const channel = "channel"

func topic(channel string) redisson.Topic { return redisson.Topic{Channel: channel} }

// queue is a group of waiters on one channel of a Subscriber. Tests identify a waiter by its index in places.
type queue struct {
	t          *testing.T
	outside    redis.UniversalClient
	subscriber *redisson.Subscriber
	places     []redisson.Registration
	parked     int
	woken      chan int
	parking    sync.WaitGroup
}

// newQueue starts a server and a Subscriber with the function wakes, and makes n waiters join and park, one after the
// other.
func newQueue(t *testing.T, n int, wakes func(string) int) *queue {
	server := redistest.Start(t)
	q := &queue{
		t:          t,
		outside:    server.Client(t),
		subscriber: redisson.NewSubscriber(server.Node(t), wakes, redisson.Flaws{}),
		woken:      make(chan int, n),
	}
	t.Cleanup(func() {
		q.parking.Wait()
		if err := q.subscriber.Close(); err != nil {
			t.Error(err)
		}
	})
	for range n {
		place, err := q.subscriber.Join(t.Context(), topic(channel), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		q.places = append(q.places, place)
		q.park(t.Context(), len(q.places)-1)
	}
	return q
}

func (q *queue) park(ctx context.Context, i int) {
	q.t.Helper()
	q.parking.Go(func() {
		if q.places[i].Park(ctx, time.Hour) == nil {
			q.woken <- i
		}
	})
	q.parked++
	q.sleep()
}

// sleep waits until exactly q.parked waiters are parked.
func (q *queue) sleep() {
	q.t.Helper()
	poll.Until(q.t, strconv.Itoa(q.parked)+" waiters are parked", func() bool {
		return q.subscriber.Parked(channel) == q.parked
	})
}

// publish publishes payload and waits until the message has woken n waiters. It returns their indexes in ascending
// order.
func (q *queue) publish(payload string, n int) []int {
	q.t.Helper()
	if err := q.outside.Publish(q.t.Context(), channel, payload).Err(); err != nil {
		q.t.Fatal(err)
	}
	var woken []int
	for range n {
		select {
		case i := <-q.woken:
			woken = append(woken, i)
			q.parked--
		case <-time.After(20 * time.Second):
			q.t.Fatalf("a message woke %v, want %d waiters", woken, n)
		}
	}
	q.sleep()
	slices.Sort(woken)
	return woken
}

// end wakes each parked waiter with a message, and makes all waiters leave.
func (q *queue) end() {
	for range q.parked {
		q.publish("0", 1)
	}
	for _, place := range q.places {
		place.Leave(false)
	}
}

// Five waiters park one after the other, and each parks again after a message has woken it. Message k must wake waiter
// k modulo 5, so that no waiter starves.
func TestMessageWakesLongestParkedWaiter(t *testing.T) {
	const waiters, rounds = 5, 3
	q := newQueue(t, waiters, redisson.One)
	for k := range rounds * waiters {
		if woken := q.publish("0", 1); woken[0] != k%waiters {
			t.Errorf("message %d woke waiter %d, want %d", k, woken[0], k%waiters)
		}
		q.park(t.Context(), k%waiters)
	}
	q.end()
}

// The payload is the number that wakes returns. A message must wake this number of waiters, those that have been parked
// longest first.
func TestMessageWakesItsNumberOfWaiters(t *testing.T) {
	q := newQueue(t, 5, func(payload string) int {
		n, _ := strconv.Atoi(payload)
		return n
	})
	if woken := q.publish("2", 2); !slices.Equal(woken, []int{0, 1}) {
		t.Errorf("2 woke %v, want the first two", woken)
	}
	q.park(t.Context(), 0)
	if woken := q.publish("3", 3); !slices.Equal(woken, []int{2, 3, 4}) {
		t.Errorf("3 woke %v, want those who were parked before", woken)
	}
	if woken := q.publish("9", 1); !slices.Equal(woken, []int{0}) {
		t.Errorf("9 woke %v, want the one that was left", woken)
	}
	for _, place := range q.places {
		place.Leave(false)
	}
}

// Three messages arrive while no waiter is parked. The next Park must return at once, because its waiter may have tried
// before the messages were sent. The Park after it must sleep, because the three messages count as one.
func TestMessageWithoutSleeperIsKept(t *testing.T) {
	q := newQueue(t, 2, redisson.One)
	q.publish("0", 1)
	q.publish("0", 1)
	for range 3 {
		q.publish("0", 0)
	}
	q.heard()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := q.places[0].Park(ctx, time.Hour); err != nil {
		t.Errorf("a message that came while all were awake was lost: %v", err)
	}
	q.park(t.Context(), 0) // sleeps
	q.end()
}

// heard waits until the Subscriber has handled all messages published so far. It does so by publishing one more
// message, on another channel, and waiting for that.
func (q *queue) heard() {
	q.t.Helper()
	place, err := q.subscriber.Join(q.t.Context(), topic("last"), time.Hour)
	if err != nil {
		q.t.Fatal(err)
	}
	defer place.Leave(false)
	if err := q.outside.Publish(q.t.Context(), "last", "0").Err(); err != nil {
		q.t.Fatal(err)
	}
	if err := place.Park(q.t.Context(), time.Hour); err != nil {
		q.t.Error(err)
	}
}

// A woken waiter leaves with handOn true, which must wake the next waiter. That one leaves with handOn false, after
// which the third must sleep until a message arrives.
func TestLeavingWaiterPassesWakeUpOn(t *testing.T) {
	q := newQueue(t, 3, redisson.One)
	if woken := q.publish("0", 1); woken[0] != 0 {
		t.Fatalf("waiter %d was woken, want the first", woken[0])
	}
	q.places[0].Leave(true)
	if i := <-q.woken; i != 1 { // without a message
		t.Errorf("waiter %d was woken by the first one's leaving, want the second", i)
	}
	q.parked--
	q.places[1].Leave(false)
	q.sleep() // the third sleeps on
	q.places = q.places[2:]
	if woken := q.publish("0", 1); woken[0] != 2 {
		t.Errorf("waiter %d was woken, want the third", woken[0])
	}
	q.places[0].Leave(false)
}

// An ACL forbids a channel, so Join must return NOPERM for it. Waiters on an allowed channel must keep waiting. Once
// the ACL allows the channel, Join must succeed.
func TestRefusedSubscriptionFailsItsWaiters(t *testing.T) {
	q := newQueue(t, 1, redisson.One)
	if err := q.outside.Do(t.Context(), "ACL", "SETUSER", "default", "resetchannels", "&"+channel).Err(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for range 2 {
		if _, err := q.subscriber.Join(ctx, topic("another"), time.Hour); !redis.HasErrorPrefix(err, "NOPERM") {
			t.Errorf("joining a forbidden channel returned %v, want NOPERM", err)
		}
	}
	if err := q.outside.Do(t.Context(), "ACL", "SETUSER", "default", "allchannels").Err(); err != nil {
		t.Fatal(err)
	}
	place, err := q.subscriber.Join(ctx, topic("another"), time.Hour)
	if err != nil {
		t.Fatalf("once it was allowed: %v", err)
	}
	place.Leave(false)
	q.end()
}
