package measure

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// Each lease must be recorded from its grant to its release, or to its end if it ended first, in µs since the window
// opened. If there are more than results.MostLeases, Packed must return none.
func TestLeases(t *testing.T) {
	t.Parallel()
	window := NewWindow(NewClock(), 0)
	window.Plan(int64(time.Second), 0)
	recorded := &Leases{}
	key := NewKey(window, 1, 10*time.Millisecond, 0)
	key.Follow(recorded, 3)
	waited := time.Duration(0)
	hold := func(from, until time.Duration, lease strategies.Lease) {
		w := NewWaiter(0)
		key.Arrive(w, int64(from-waited), int64(from-waited))
		key.Enter(w, int64(from), lease)
		key.Exit(w, int64(until))
	}
	hold(990*time.Millisecond, 995*time.Millisecond, plain{})
	hold(1001*time.Millisecond, 1004*time.Millisecond, fenced{token: 7})
	hold(1005*time.Millisecond, 1020*time.Millisecond, fenced{token: -8})
	waited = 9 * time.Millisecond
	hold(1030*time.Millisecond, 1034*time.Millisecond, plain{})
	want := []results.Lease{
		{Key: 3, From: -10000, Until: -5000},
		{Key: 3, From: 1000, Until: 4000, Fenced: true, Token: 7},
		{Key: 3, From: 5000, Until: 15000, Fenced: true, Token: -8},
		{Key: 3, From: 30000, Until: 31000},
	}
	var got []results.Lease
	for lease, err := range recorded.Packed().All() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, lease)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	recorded.count = results.MostLeases - 1
	hold(1030*time.Millisecond, 1040*time.Millisecond, plain{})
	if recorded.Packed() == nil {
		t.Error("as many as may be recorded are not")
	}
	hold(1030*time.Millisecond, 1040*time.Millisecond, plain{})
	if recorded.Packed() != nil {
		t.Error("more leases than may be recorded are")
	}
}
