package measure

import (
	"math"
	"testing"
	"time"
)

// queue has clients take turns on one key in the order in which they came, so many in all,
// and then stop; those of them that are left out wait for ever.
func queue(clients, granted int, leftOut ...int) (*Recorder, []*Key, []*Waiter) {
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
	return r, []*Key{key}, waiters
}

// A client without a turn starves only if there were turns enough for it to have had one.
func TestStarvedIsLessThanAFairShareCouldHaveGiven(t *testing.T) {
	for _, test := range []struct {
		name             string
		clients, granted int
		leftOut          []int
		starved          int // -1 is that it cannot be told
		part             float64
	}{
		{"a queue, half a round", 100, 50, nil, -1, 0.25},
		{"a queue, one turn less than a round", 100, 99, nil, -1, 99. / 200},
		{"a queue, a round", 100, 100, nil, 0, 0},
		{"one left out, in less than two rounds", 100, 199, []int{7}, -1, 199. / 200},
		{"one left out, in two rounds", 100, 200, []int{7}, 1, 0},
		{"three left out", 100, 250, []int{7, 8, 99}, 3, 0},
		{"nobody had a turn", 100, 0, nil, -1, 0},
	} {
		r, keys, waiters := queue(test.clients, test.granted, test.leftOut...)
		f, err := r.Fairness(keys, waiters)
		if err != nil {
			t.Fatal(err)
		}
		part, short := r.ShortOfARound(keys, waiters)
		switch {
		case test.starved < 0 && f.Starved != nil:
			t.Errorf("%s: %d starved, which cannot be told", test.name, *f.Starved)
		case test.starved >= 0 && (f.Starved == nil || *f.Starved != test.starved):
			t.Errorf("%s: starved %v, want %d", test.name, f.Starved, test.starved)
		case short != (test.starved < 0) || math.Abs(part-test.part) > 1e-9:
			t.Errorf("%s: short %v, room for %v of two rounds, want %v", test.name, short, part, test.part)
		}
	}
}

func TestWhoNeverWaitedDoesNotStarve(t *testing.T) {
	r := NewRecorder(planned(0), 2)
	for i := range int64(50) {
		at := second + i*1000
		r.Client(0).Acquired(Acquisition{Asked: at, Granted: at + 1, Released: at + 2, Done: at + 3, Grant: Grant{Handoff: none}, Counted: true})
	}
	r.Client(1).Thought(0, 5*second)
	f, err := r.Fairness(nil, nil)
	if err != nil || f.Starved == nil || *f.Starved != 0 {
		t.Errorf("starved %v, %v: the second client only thought", f.Starved, err)
	}
}

// With several keys the queue on one may be long by chance while others are served often:
// it is the grants of the key that a client waits for which could have been its own.
func TestAQueueOnAnotherKeyIsNotOnesOwn(t *testing.T) {
	for _, test := range []struct {
		grants  int // of the key that the client without a turn waits for, where three came before it
		starved bool
	}{{3, false}, {7, false}, {8, true}} {
		r := NewRecorder(planned(0), 5)
		keys := []*Key{NewKey(r.window, 1, time.Hour, 5), NewKey(r.window, 1, time.Hour, 5)}
		waiters := make([]*Waiter, 5)
		for i := range waiters {
			waiters[i] = NewWaiter(i)
		}
		take := func(i, on int) {
			grant := keys[on].Enter(waiters[i], second, nil)
			r.Client(i).Acquired(Acquisition{Granted: second, Released: second, Done: second, Grant: grant, Counted: true})
			keys[on].Exit(waiters[i], second)
			keys[on].Arrive(waiters[i], second, second)
		}
		for i := range 4 {
			keys[0].Arrive(waiters[i], 0, 0)
		}
		keys[1].Arrive(waiters[4], 0, 0)
		for range 100 {
			take(4, 1)
		}
		for n := range test.grants {
			take(n%3, 0)
		}
		for i, w := range waiters {
			r.Client(i).Waited(Stopped, second, second, 5*second, keys[i/4].Leave(w, 5*second))
		}
		f, err := r.Fairness(keys, waiters)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Starved != nil && *f.Starved == 1; got != test.starved || f.Starved != nil && !test.starved {
			t.Errorf("after %d grants of its key: starved %v", test.grants, f.Starved)
		}
	}
}

// Where clients are only slots for arrivals, nobody starves: a client that was hardly wanted has no share.
func TestSlotsDoNotStarve(t *testing.T) {
	for _, slots := range []bool{false, true} {
		r, keys, waiters := queue(3, 30, 2)
		if slots {
			r.OpenLoop()
		}
		f, err := r.Fairness(keys, waiters)
		if err != nil {
			t.Fatal(err)
		}
		if known := f.Starved != nil; known == slots {
			t.Errorf("slots %v: %v starved", slots, f.Starved)
		}
	}
}
