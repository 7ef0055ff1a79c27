package measure

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/results"
)

const second = int64(time.Second)

// planned returns a window from 1 s to 3 s.
func planned(quota int64) *Window {
	w := NewWindow(NewClock(), quota)
	w.Plan(second, 3*second)
	return w
}

// turns records consecutive turns of c and returns the end of the last one. The first begins at from. phases holds four
// durations for each turn: wait, hold, release and think.
func turns(c *Client, from int64, phases ...int64) int64 {
	asked := from
	for ; len(phases) >= 4; phases = phases[4:] {
		t := Acquisition{Due: asked, Asked: asked, Grant: Grant{Handoff: none}, Counted: true}
		t.Granted = t.Asked + phases[0]
		t.Released = t.Granted + phases[1]
		t.Done = t.Released + phases[2]
		asked = t.Done + phases[3]
		c.Acquired(t)
		c.Thought(t.Done, asked)
	}
	return asked
}

func TestWaitCountsInWindowOfItsEnd(t *testing.T) {
	r := NewRecorder(planned(0), 1)
	// The first wait lasts from 0.5 s before the window opens until 0.5 s after. The second is still open when the window
	// closes.
	turns(r.Client(0), second/2, second, second, 0, 0, 2*second, 0, 0, 0)
	w := recorded(r).Waiting
	if w.PerAcquisition.Count != 1 || w.PerAcquisition.Censored != 1 || w.Open != 1 {
		t.Fatalf("%d waits, %d censored, %d open; want 1, 1, 1",
			w.PerAcquisition.Count, w.PerAcquisition.Censored, w.Open)
	}
	if *w.PerAcquisition.MeanNS != float64(second) {
		t.Errorf("the wait counts with %g ns, want its full length", *w.PerAcquisition.MeanNS)
	}
	b := recorded(r).TimeAccounting
	if !b.Balanced || b.Wait != 1 || b.Hold != 1 {
		t.Errorf("books %+v: want 1 s of waiting and 1 s of holding", b)
	}
	if u := recorded(r).Speed; u.Utilisation != 0.5 || u.Acquisitions != 1 {
		t.Errorf("speed %+v", u)
	}
}

func TestStoppedAndGivenUpWaitsAreCensored(t *testing.T) {
	r := NewRecorder(planned(0), 2)
	r.Client(0).Thought(0, second)
	r.Client(0).Waited(TimedOut, second, second, 2*second, 0)
	r.Client(0).Waited(Stopped, 2*second, 2*second, 4*second, 0)
	r.Client(1).Waited(Stopped, 0, 0, 4*second, 0)
	w := recorded(r).Waiting
	if w.TimedOut != 1 || w.Open != 2 || w.PerAcquisition.Censored != 3 || w.PerAcquisition.Count != 0 {
		t.Errorf("waiting %+v", w)
	}
	if max := w.PerAcquisition.Max; max.NS != 3*second || !max.AtLeast {
		t.Errorf("longest %+v, want at least the 3 s up to the window's end", max)
	}
	if b := recorded(r).TimeAccounting; !b.Balanced || b.Wait != 4 {
		t.Errorf("books %+v", b)
	}
	if f := recorded(r).Fairness; f.Starved != nil || f.Jain != nil {
		t.Errorf("fairness %+v", f)
	}
}

func TestBooksDetectMissingTime(t *testing.T) {
	for _, test := range []struct {
		name     string
		thought  int64
		balanced bool
	}{
		{"whole", 2 * second, true},
		{"0.05 % short", 2*second - second/1000, true},
		{"1 % short", 2*second - second/50, false},
		{"1 % too much", 2*second + second/50, false},
	} {
		r := NewRecorder(planned(0), 3)
		for i := range 3 {
			r.Client(i).Thought(0, 5*second)
		}
		r.Client(1).spent[thinking] = test.thought
		if b := recorded(r).TimeAccounting; b.Balanced != test.balanced {
			t.Errorf("%s: %+v", test.name, b)
		}
	}
}

func TestClientsHaveEqualWeight(t *testing.T) {
	r := NewRecorder(planned(0), 10)
	// Nine clients have ten waits of 100 ms each. The tenth client has a thousand waits of 1 ms.
	for i := range 9 {
		var waits []int64
		for range 10 {
			waits = append(waits, second/10, 0, 0, second/10)
		}
		turns(r.Client(i), second, waits...)
	}
	var barging []int64
	for range 1000 {
		barging = append(barging, second/1000, 0, 0, second/1000)
	}
	turns(r.Client(9), second, barging...)
	w := recorded(r).Waiting
	if got := w.PerAcquisition.P90.NS; got > second/500 {
		t.Errorf("per acquisition p90 is %d ns", got)
	}
	if got := *w.PerClient.P50; math.Abs(float64(got.NS)/1e8-1) > 0.002 || got.AtLeast {
		t.Errorf("per client p50 is %v, want 100 ms", &got)
	}
	f := recorded(r).Fairness
	if f.AcquisitionsMin != 10 || f.AcquisitionsMax != 1000 || f.Starved == nil || *f.Starved != 0 {
		t.Errorf("fairness %+v", f)
	}
	// Jain's index is (9·10 + 1000)² ÷ (10 · (9·10² + 1000²)).
	if want := 1090.0 * 1090 / (10 * (900 + 1e6)); math.Abs(*f.Jain-want) > 1e-12 {
		t.Errorf("Jain %g, want %g", *f.Jain, want)
	}
}

func TestLongWaitsAreNotClamped(t *testing.T) {
	r := NewRecorder(planned(0), 1)
	long := 2 * results.NewHistogram().HighestTrackableValue()
	r.Client(0).Acquired(Acquisition{
		Due: 2*second - long, Asked: 2*second - long, Granted: 2 * second, Released: 2 * second, Done: 2 * second,
		Grant: Grant{Handoff: none}, Counted: true,
	})
	w := recorded(r).Waiting
	if w.PerAcquisition.Overflow != 1 || w.PerAcquisition.Max.NS != long || *w.PerAcquisition.MeanNS != float64(long) {
		t.Errorf("%+v", w.PerAcquisition)
	}
}

// recorded returns a run with the records of r and of these keys. Without keys, it adds one that no client used.
func recorded(r *Recorder, keys ...*Key) (run results.Run) {
	if keys == nil {
		keys = []*Key{NewKey(r.window, 1, time.Second, 0)}
	}
	r.Record(&run, keys)
	run.Compute()
	return run
}

// Up to three of ten clients wait for the whole window. How long they usually wait is unknown, so the median per client
// must be only a lower bound: the median of the other clients.
func TestClientsWithoutTurnBoundPercentiles(t *testing.T) {
	for starved := range 4 {
		r := NewRecorder(planned(0), 10)
		for i := range 10 {
			if i < starved {
				r.Client(i).Waited(Stopped, 0, 0, 4*second, 0)
				continue
			}
			var waits []int64
			for n := range int64(198) {
				waits = append(waits, (n*37%100+1)*second/10000, 0, 0, second/100-(n*37%100)*second/10000)
			}
			turns(r.Client(i), second, waits...)
		}
		w := recorded(r).Waiting
		got := w.PerClient.P50
		if got == nil || got.AtLeast != (starved > 0) || math.Abs(float64(got.NS)/5e6-1) > 0.05 {
			t.Errorf("%d of 10 starve: p50 per client %v", starved, got)
		}
	}
}

func waits(all ...int64) (open []results.Wait) {
	for _, ns := range all {
		open = append(open, results.Wait{NS: ns})
	}
	return open
}

// The percentiles of a timeline slice must include open waits. A wait that began before the slice must change only
// percentiles above the time that it had lasted by then.
func TestSliceCountsOpenWaits(t *testing.T) {
	r := NewRecorder(planned(0), 1)
	crowd := waits(5*second, 6*second, 7*second)
	r.Recent(crowd)
	for range 97 {
		turns(r.Client(0), 2*second, 1000, 0, 0, 0)
	}
	for i := range crowd {
		crowd[i].NS += second
	}
	// In this slice 100 waits began, and 97 of them ended after 1 µs. The three older waits had lasted longer before the
	// slice began, so they must not change the median.
	got := r.Recent(append(crowd, waits(10, 20, 30)...))
	if got.P50.NS < 1000 || got.P50.NS > 1010 || got.P50.AtLeast || got.Max.NS != 1000 {
		t.Errorf("p50 %v, p99 %v, max %v", got.P50, got.P99, got.Max)
	}
	// In the next slice, the three youngest waits are still open.
	for range 97 {
		turns(r.Client(0), 2*second, 1000, 0, 0, 0)
	}
	got = r.Recent(waits(second, second, second))
	if got.P50.NS < 1000 || got.P50.NS > 1010 || !got.P99.AtLeast || got.P99.NS != second {
		t.Errorf("with waits under way p50 %v, p99 %v", got.P50, got.P99)
	}
	if got := r.Recent(waits(2 * second)); !got.P50.AtLeast || got.Max != nil {
		t.Errorf("nothing ended: p50 %v, max %v", got.P50, got.Max)
	}
}

func TestTurnsAreRecordedPerClient(t *testing.T) {
	r := NewRecorder(planned(0), 3)
	turns(r.Client(0), second, 1, 1, 1, 1, 1, 1, 1, 1)
	turns(r.Client(1), second, 1, 1, 1, 1)
	want := results.Histogram{{To: 0, Count: 1}, {To: 1, Count: 1}, {To: 2, Count: 1}}
	if diff := cmp.Diff(want, recorded(r).Fairness.PerClient); diff != "" {
		t.Error(diff)
	}
}

func TestWindowClosesAtQuota(t *testing.T) {
	w := NewWindow(NewClock(), 3)
	w.Plan(0, 0)
	for n := range 5 {
		if got, want := w.Count(w.Clock.Now()), n < 3; got != want {
			t.Errorf("acquisition %d counted: %v", n+1, got)
		}
	}
	select {
	case <-w.Closed():
	default:
		t.Error("not closed")
	}
	if end := w.End(); end > w.Clock.Now() {
		t.Errorf("ends at %d", end)
	}
	end := w.End()
	w.Close()
	if w.End() != end {
		t.Error("closing again moved the end")
	}
	planned := NewWindow(NewClock(), 0)
	planned.Plan(0, 1)
	if planned.Close(); planned.End() != 1 {
		t.Errorf("ends at %d, planned was 1", planned.End())
	}
}

// BenchmarkTurn measures what it costs to record one acquisition.
func BenchmarkTurn(b *testing.B) {
	w := NewWindow(NewClock(), 0)
	w.Plan(0, math.MaxInt64)
	r := NewRecorder(w, 100)
	k, waiter := NewKey(w, 1, time.Second, 100), NewWaiter(7)
	c := r.Client(7)
	b.ReportAllocs()
	var now int64
	for b.Loop() {
		k.Arrive(waiter, 0, 0)
		g := k.Enter(waiter, now+1000, plain{})
		k.Exit(waiter, now+2000)
		c.Acquired(Acquisition{
			Due: now, Asked: now, Granted: now + 1000, Released: now + 2000, Done: now + 3000, Grant: g, Counted: true,
		})
		c.Thought(now+3000, now+4000)
		now += 4000
	}
}

// The strategies a and b are mixed. Clients with even numbers use a, those with odd numbers b, and each part must
// contain only the records of its own clients.
func TestMixedStrategyParts(t *testing.T) {
	for _, clients := range []int{2, 3, 40, 101} {
		r := NewRecorder(planned(0), clients)
		for i := range clients {
			wait := int64(1000)
			if i%2 == 1 {
				wait = 3000
			}
			turns(r.Client(i), 2*second, wait, 0, 0, 0)
			if i%2 == 1 {
				r.Client(i).Acquired(Acquisition{
					Due: 2*second + 3000, Asked: 2*second + 3000, Granted: 2*second + 6000, Released: 2*second + 6000,
					Done: 2*second + 6000, Grant: Grant{Handoff: none, Overtaken: true}, Counted: true,
				})
			}
		}
		parts := r.Parts([]string{"a", "b"})
		a, b := parts[0], parts[1]
		if a.Strategy != "a" || b.Strategy != "b" || a.Clients != int64(clients+1)/2 || b.Clients != int64(clients)/2 ||
			a.Acquisitions != a.Clients || b.Acquisitions != 2*b.Clients || *a.Overtaken != 0 || *b.Overtaken != 50 {
			t.Errorf("%d clients: %+v", clients, parts)
		}
		if share := *a.Share + *b.Share; math.Abs(share-100) > 1e-9 || *b.Share < *a.Share {
			t.Errorf("%d clients: shares %v and %v", clients, *a.Share, *b.Share)
		}
		if a.Waits.Count != a.Acquisitions || b.Waits.Count != b.Acquisitions || a.Waits.Max.NS != 1000 ||
			a.Waits.P99.NS > 1100 || b.Waits.P50.NS < 2900 {
			t.Errorf("%d clients: waits %+v", clients, parts)
		}
	}
	r := NewRecorder(planned(0), 4)
	if parts := r.Parts([]string{"a", "b"}); parts[0].Share != nil || parts[0].Overtaken != nil {
		t.Errorf("without an acquisition: %+v", parts)
	}
	if r.OpenLoop(); r.Parts([]string{"a", "b"}) != nil {
		t.Error("what a slot of an open loop gets depends on the arrivals")
	}
}

// One wait in ten of strategy b times out after 5 µs, and one gets a lease after 9 µs. The p99 of b must be a lower
// bound of 5 µs, and that of a must be exact.
func TestPartsBoundTimedOutWaits(t *testing.T) {
	t.Parallel()
	r := NewRecorder(planned(0), 2)
	for range 90 {
		turns(r.Client(0), 2*second, 1000, 0, 0, 0)
		turns(r.Client(1), 2*second, 1000, 0, 0, 0)
	}
	for range 9 {
		r.Client(1).Waited(TimedOut, 2*second, 2*second, 2*second+5000, 0)
	}
	turns(r.Client(1), 2*second, 9000, 0, 0, 0)
	parts := r.Parts([]string{"a", "b"})
	if a, b := parts[0].Waits.P99, parts[1].Waits.P99; a.AtLeast || !b.AtLeast || b.NS > 5100 || b.NS < 5000 {
		t.Errorf("p99 of a is %v, of b, which gave up one wait in ten after 5 µs, %v", a, b)
	}
}

// The test records one duration of each kind in the window and one before it. Each distribution of the run must contain
// exactly the first.
func TestKindsHaveSeparateDistributions(t *testing.T) {
	r := NewRecorder(planned(0), 1)
	for kind := range kindCount {
		r.Client(0).Took(kind, 2*second, 2*second+1000*(1+int64(kind)))
		r.Client(0).Took(kind, 0, second/2) // before the window
	}
	run := recorded(r)
	for kind, d := range [kindCount]results.Distribution{
		Hold: run.Speed.Hold, Release: run.Speed.Release, Handoff: run.Speed.Handoff, Lateness: run.Waiting.Lateness,
	} {
		if d.Count != 1 || d.Max.NS != 1000*(1+int64(kind)) {
			t.Errorf("kind %d: %+v", kind, d)
		}
	}
}

// Of 20 waits in a timeline slice, 19 time out after 5 µs. The median must be a lower bound of 5 µs.
func TestSliceCountsTimedOutWaits(t *testing.T) {
	r := NewRecorder(planned(0), 1)
	r.Recent(nil)
	turns(r.Client(0), 2*second, 1000, 0, 0, 0)
	for range 19 {
		r.Client(0).Waited(TimedOut, 2*second, 2*second, 2*second+5000, 0)
	}
	if got := r.Recent(nil); got.P50 == nil || !got.P50.AtLeast || got.P50.NS < 5000 {
		t.Errorf("of 20 waits 19 timed out after 5 µs: p50 %v", got.P50)
	}
	if got := r.Recent(nil); got.P50 != nil {
		t.Errorf("nothing happened: p50 %v", got.P50)
	}
}
