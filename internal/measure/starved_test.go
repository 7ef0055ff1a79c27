package measure

import (
	"testing"
	"time"
)

// queue records clients that acquire one key in order of arrival, `granted` times altogether. The clients in leftOut
// never get the lock.
func queue(clients, granted int, leftOut ...int) (*Recorder, []*Key) {
	r := NewRecorder(planned(0), clients)
	key := NewKey(r.window, 1, time.Hour, clients)
	waiters, line := make([]*Waiter, clients), []int{}
	for i := range clients {
		waiters[i] = NewWaiter(i)
		key.Arrive(waiters[i], 0, 0)
		line = append(line, i)
	}
	starves := map[int]bool{}
	for _, i := range leftOut {
		starves[i] = true
	}
	at := second
	for range granted {
		next := 0
		for starves[line[next]] {
			next++
		}
		i := line[next]
		line = append(append(line[:next:next], line[next+1:]...), i)
		grant := key.Enter(waiters[i], at, nil)
		r.Client(i).Acquired(Acquisition{Asked: 0, Granted: at, Released: at, Done: at, Grant: grant, Counted: true})
		key.Exit(waiters[i], at)
		key.Arrive(waiters[i], at, at)
		at += 1000
	}
	end := r.window.End()
	for i := range clients {
		r.Client(i).Waited(Stopped, at, at, end+1, key.Leave(waiters[i], end+1))
	}
	return r, []*Key{key}
}

// A client without an acquisition counts as starved only if a fair share would have been at least one acquisition per
// client. With several keys it is unknown whether such a client starves, because the queue of one key may be long by
// chance. In an open loop it is unknown, because clients are only slots for arrivals.
func TestStarvationNeedsAFairShare(t *testing.T) {
	for _, test := range []struct {
		name             string
		clients, granted int
		leftOut          []int
		keys             int
		slots            bool
		starved          int // -1: unknown
	}{
		{"a queue, half a round", 100, 50, nil, 1, false, -1},
		{"a queue, one turn less than a round", 100, 99, nil, 1, false, -1},
		{"a queue, a round", 100, 100, nil, 1, false, 0},
		{"one left out, in less than two rounds", 100, 199, []int{7}, 1, false, -1},
		{"one left out, in two rounds", 100, 200, []int{7}, 1, false, 1},
		{"three left out", 100, 250, []int{7, 8, 99}, 1, false, 3},
		{"no client had a turn", 100, 0, nil, 1, false, -1},
		{"one left out, with two keys", 100, 250, []int{7}, 2, false, -1},
		{"everybody served, with two keys", 100, 250, nil, 2, false, 0},
		{"one of three left out", 3, 30, []int{2}, 1, false, 1},
		{"one of three slots left out", 3, 30, []int{2}, 1, true, -1},
	} {
		r, keys := queue(test.clients, test.granted, test.leftOut...)
		for range test.keys - 1 {
			keys = append(keys, NewKey(r.window, 1, time.Hour, test.clients))
		}
		if test.slots {
			r.OpenLoop()
		}
		got := -1
		if f := recorded(r, keys...).Fairness; f.Starved != nil {
			got = *f.Starved
		}
		if got != test.starved {
			t.Errorf("%s: %d starved, want %d", test.name, got, test.starved)
		}
	}
}

func TestClientWithoutWaitIsNotStarved(t *testing.T) {
	r := NewRecorder(planned(0), 2)
	for i := range int64(50) {
		turns(r.Client(0), second+i*1000, 1, 1, 1, 0)
	}
	r.Client(1).Thought(0, 5*second)
	if f := recorded(r).Fairness; f.Starved == nil || *f.Starved != 0 {
		t.Errorf("starved %v: the second client only thought", f.Starved)
	}
}
