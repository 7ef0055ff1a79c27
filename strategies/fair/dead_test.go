package fair_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// Dead waiters hold up those behind them until the last one's deadline, although the
// lock is free: n of them cost n waits. Meanwhile the living poll.
func TestDeadWaitersCostTheirDeadline(t *testing.T) {
	for _, dead := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(dead), func(t *testing.T) {
			trial.Calm(t, func(times int) string { return waitForTheDead(t, dead, time.Duration(times)*150*time.Millisecond) })
		})
	}
}

func waitForTheDead(t *testing.T, dead int, wait time.Duration) (spoilt string) {
	server := redistest.Start(t)
	outside := server.Client(t)
	p := trial.Start(t, server, fmt.Sprint("fair:wait-timeout=", wait), time.Minute)
	began := time.Now()
	for i := range dead {
		plant(t, outside, somebody+fmt.Sprint(i), began.Add(time.Duration(i+1)*wait))
	}
	last := began.Add(time.Duration(dead) * wait).UnixMilli()
	lease := p.Acquire(t, "key")
	if now := time.Now().UnixMilli(); now < last {
		t.Errorf("it was granted %d ms before the last dead waiter's deadline", last-now)
	}
	counts := p.Counts()
	switch {
	case counts.Attempts < 6:
		spoilt = fmt.Sprintf("%+v: the deadlines were over before it had polled three times", counts)
	case counts.Useful != 1 || counts.Futile != counts.Attempts-3:
		t.Errorf("%+v: it must poll, and be woken once for each try but the first two", counts)
	}
	if n := len(queued(t, outside)) + len(scores(t, outside)); n != 0 {
		t.Errorf("%d entries of the dead are left", n)
	}
	trial.Release(t, lease)
	return spoilt
}

// A release drops the overdue, and tells the first who is not.
func TestReleaseDropsTheOverdue(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	p := trial.Start(t, server, "fair", time.Hour)
	lease := p.Acquire(t, "key")
	for i := range 3 {
		plant(t, outside, somebody+fmt.Sprint(i), time.Now().Add(-time.Second))
	}
	// The first reply is negative: what is left to the overdue tail.
	w := start(t, p)
	poll.Until(t, "it stands in the queue alone", func() bool {
		return len(queued(t, outside)) == 1 && p.Counts().Attempts == 3
	})
	for i := range 3 {
		outside.LPush(t.Context(), queue, somebody+fmt.Sprint(i)) // without a deadline at all
	}
	trial.Release(t, lease)
	trial.Release(t, w.lease(t))
	if n := outside.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// The first reply to a newcomer is negative when the tail is overdue behind a head
// that is not: it queues all the same, and gets its turn.
func TestNegativeFirstReply(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	p := trial.Start(t, server, "fair:wait-timeout=100ms", time.Hour)
	lease := p.Acquire(t, "key")
	plant(t, outside, somebody+"1", time.Now().Add(time.Hour))
	plant(t, outside, somebody+"2", time.Now().Add(-20*time.Second))
	w := enqueue(t, outside, p, 3)
	me := queued(t, outside)[2]
	if late := time.Now().UnixMilli() - scores(t, outside)[me]; late < 15_000 {
		t.Errorf("its deadline is %d ms ago, want it a wait behind the overdue one's", late)
	}
	// It is overdue itself when the head leaves; it queues anew, and is alone then.
	outside.LPop(t.Context(), queue)
	outside.ZRem(t.Context(), deadlines, somebody+"1")
	trial.Release(t, lease)
	if n := outside.Exists(t.Context(), queue).Val(); n != 0 {
		t.Errorf("the overdue stand in the queue after a release")
	}
	outside.Publish(t.Context(), told+me, "0")
	trial.Release(t, w.lease(t))
}
