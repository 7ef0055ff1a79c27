package internal_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockbench/lockbench/strategies/internal/validity"
)

// A simulated server executes random extensions late and in any order, and some replies are lost. Until must never
// report a lease as valid after the server has let it expire.
func TestUntilIsNeverLaterThanTheServer(t *testing.T) {
	const runs = 5000
	prolonged := 0
	for seed := range uint64(runs) {
		synctest.Test(t, func(t *testing.T) {
			var until validity.Until
			first := time.Now().Add(20 * time.Millisecond)
			until.Set(first)
			server := first // when the key expires
			for _, event := range extensions(rand.New(rand.NewPCG(1, seed)), &until, &server) {
				time.Sleep(time.Until(event.at) - 1)
				if end, now := until.Get(), time.Now(); now.Before(end) && !now.Before(server) {
					t.Fatalf("seed %d: the server let it run out %v before the end it names", seed, end.Sub(server))
				}
				time.Sleep(time.Nanosecond)
				event.do()
			}
			if end := until.Get(); end.After(server) {
				t.Fatalf("seed %d: the server lets it run out %v before the end it names", seed, end.Sub(server))
			} else if end.After(first) {
				prolonged++
			}
		})
	}
	if prolonged < runs/10 {
		t.Errorf("only %d of %d leases were prolonged", prolonged, runs)
	}
}

type event struct {
	at time.Time
	do func()
}

// extensions returns the events of four random extensions, ordered by time: each is sent, may be executed, and may get
// its reply. The events update until, and server, the time at which the server lets the key expire.
func extensions(random *rand.Rand, until *validity.Until, server *time.Time) (all []event) {
	after := func(from time.Time, ms int64) time.Time {
		return from.Add(time.Duration(random.Int64N(ms*1000)+1) * time.Microsecond)
	}
	for range 4 {
		sent := after(time.Now(), 40)
		arrives := after(sent, 30)
		ends := after(arrives, 10)
		ttl := time.Duration(random.Int64N(40)+1) * time.Millisecond
		lost, broken := random.IntN(3) == 0, random.IntN(4) == 0
		if lost {
			ends = after(sent, 2)
		}
		var answer func(done, open bool)
		done := false
		all = append(all, event{sent, func() { answer = until.Extending(sent, ttl) }},
			event{arrives, func() {
				if done = !broken && arrives.Before(*server); done {
					*server = arrives.Add(ttl)
				}
			}}, event{ends, func() { answer(done && !lost, lost) }})
	}
	slices.SortStableFunc(all, func(a, b event) int { return a.at.Compare(b.at) })
	return all
}

// Each step begins or completes an extension, and then checks how much of the lease is left. An extension by an hour
// must not prolong the lease beyond a shorter, unanswered extension that the server may still execute.
func TestExtending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var until validity.Until
		left := func(want time.Duration) {
			t.Helper()
			if got := time.Until(until.Get()); got != want {
				t.Errorf("it has %v left, want %v", got, want)
			}
		}
		extend := func(ttl time.Duration) func(done, open bool) { return until.Extending(time.Now(), ttl) }
		until.Set(time.Now().Add(time.Minute))
		refused := extend(10 * time.Second)
		left(10 * time.Second) // the server may have it by now
		refused(false, false)
		left(10 * time.Second)
		extend(time.Minute)(true, false)
		left(time.Minute)
		first, second := extend(2*time.Minute), extend(3*time.Minute)
		second(true, false)
		left(2 * time.Minute) // the first may come last
		first(true, false)
		left(2 * time.Minute)
		extend(time.Hour)(true, false)
		left(time.Hour)
		extend(10*time.Second)(false, true)
		extend(20*time.Second)(false, true)
		extend(time.Hour)(true, false)
		left(10 * time.Second) // that one may still come
	})
}
