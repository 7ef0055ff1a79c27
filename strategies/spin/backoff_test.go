package spin_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies/spin"
)

func TestSleeps(t *testing.T) {
	const ms = time.Millisecond
	least := func(int64) int64 { return 0 }
	most := func(n int64) int64 { return n - 1 }
	for _, test := range []struct {
		backoff string
		random  func(int64) int64
		want    []time.Duration // base 2ms, cap 20ms
	}{
		{spin.None, most, []time.Duration{0, 0, 0}},
		{spin.Fixed, most, []time.Duration{2 * ms, 2 * ms, 2 * ms}},
		{spin.Exponential, most, []time.Duration{2 * ms, 4 * ms, 8 * ms, 16 * ms, 20 * ms, 20 * ms}},
		{spin.FullJitter, least, []time.Duration{0, 0, 0, 0, 0, 0}},
		{spin.FullJitter, most, []time.Duration{2 * ms, 4 * ms, 8 * ms, 16 * ms, 20 * ms, 20 * ms}},
		{spin.EqualJitter, least, []time.Duration{1 * ms, 2 * ms, 4 * ms, 8 * ms, 10 * ms, 10 * ms}},
		{spin.EqualJitter, most, []time.Duration{2 * ms, 4 * ms, 8 * ms, 16 * ms, 20 * ms, 20 * ms}},
		{spin.Decorrelated, least, []time.Duration{2 * ms, 2 * ms, 2 * ms}},
		{spin.Decorrelated, most, []time.Duration{6 * ms, 18 * ms, 20 * ms, 20 * ms}},
		{spin.AddedJitter, least, []time.Duration{2 * ms, 4 * ms, 8 * ms, 16 * ms, 20 * ms, 20 * ms}},
		{spin.AddedJitter, most, []time.Duration{3 * ms, 6 * ms, 12 * ms, 24 * ms, 30 * ms, 30 * ms}},
		{spin.Redisson, least, []time.Duration{2 * ms, 4 * ms, 8 * ms, 16 * ms, 20 * ms, 20 * ms}},
		{spin.Redisson, most, []time.Duration{2 * ms, 4 * ms, 9 * ms, 20 * ms, 20 * ms}},
	} {
		options := spin.Options{Backoff: test.backoff, Base: 2 * ms, Cap: 20 * ms}
		next := options.Sleeps(test.random)
		var got []time.Duration
		for range test.want {
			got = append(got, next())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.backoff, got, test.want)
		}
	}
}

// A waiter may poll for days: no backoff may overflow.
func TestSleepsStayWithinTheirCap(t *testing.T) {
	most := func(n int64) int64 {
		if n <= 0 {
			t.Fatalf("random asked for below %d", n)
		}
		return n - 1
	}
	for _, backoff := range []string{spin.Exponential, spin.FullJitter, spin.EqualJitter, spin.Decorrelated, spin.Redisson} {
		next := spin.Options{Backoff: backoff, Base: time.Nanosecond, Cap: time.Hour}.Sleeps(most)
		for n := range 10_000 {
			if got := next(); got < 0 || got > time.Hour {
				t.Fatalf("%s: sleep %d is %v", backoff, n, got)
			}
		}
	}
}

func TestOptionsAreRefusedWithEveryFault(t *testing.T) {
	for _, test := range []struct {
		options spin.Options
		want    []string // one a fault
	}{
		{spin.Defaults(), nil},
		{spin.Options{Backoff: spin.Fixed, Base: time.Second, Cap: time.Millisecond}, nil}, // cap means nothing
		{spin.Options{Backoff: "linear", Base: -1, Cap: 0}, []string{`"linear"`, "base", "cap"}},
		{spin.Options{Backoff: spin.None, Base: 1, Cap: 1, Tries: -1, WaitAnyway: true}, []string{"tries", "wait-anyway"}},
		{spin.Options{Backoff: spin.Exponential, Base: time.Second, Cap: time.Millisecond}, []string{"cap 1ms is smaller than base 1s"}},
	} {
		err := test.options.Validate()
		if (err == nil) != (test.want == nil) {
			t.Errorf("%+v: %v", test.options, err)
			continue
		}
		if err == nil {
			continue
		}
		if lines := strings.Count(err.Error(), "\n") + 1; lines != len(test.want) {
			t.Errorf("%+v: %d faults, want %d: %v", test.options, lines, len(test.want), err)
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v does not name %q", test.options, err, want)
			}
		}
	}
}
