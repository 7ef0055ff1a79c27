package polled_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies/polled"
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
		{polled.None, most, []time.Duration{0, 0, 0}},
		{polled.Fixed, most, []time.Duration{2 * ms, 2 * ms, 2 * ms}},
		{polled.Exponential, most, []time.Duration{2 * ms, 4 * ms, 8 * ms, 16 * ms, 20 * ms, 20 * ms}},
		{polled.FullJitter, least, []time.Duration{0, 0, 0, 0, 0, 0}},
		{polled.FullJitter, most, []time.Duration{2 * ms, 4 * ms, 8 * ms, 16 * ms, 20 * ms, 20 * ms}},
		{polled.AddedJitter, least, []time.Duration{2 * ms, 4 * ms, 8 * ms, 16 * ms, 20 * ms, 20 * ms}},
		{polled.AddedJitter, most, []time.Duration{3 * ms, 6 * ms, 12 * ms, 24 * ms, 30 * ms, 30 * ms}},
		{polled.Redisson, least, []time.Duration{2 * ms, 4 * ms, 8 * ms, 16 * ms, 20 * ms, 20 * ms}},
		{polled.Redisson, most, []time.Duration{2 * ms, 4 * ms, 9 * ms, 20 * ms, 20 * ms}},
	} {
		options := polled.SpinOptions{Backoff: test.backoff, Base: 2 * ms, Cap: 20 * ms}
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

// No sleep may overflow or exceed the cap, even after 10,000 attempts, because a waiter may poll for days.
func TestSleepsStayWithinTheirCap(t *testing.T) {
	most := func(n int64) int64 {
		if n <= 0 {
			t.Fatalf("random asked for below %d", n)
		}
		return n - 1
	}
	for _, backoff := range []string{polled.Exponential, polled.FullJitter, polled.Redisson} {
		next := polled.SpinOptions{Backoff: backoff, Base: time.Nanosecond, Cap: time.Hour}.Sleeps(most)
		for n := range 10_000 {
			if got := next(); got < 0 || got > time.Hour {
				t.Fatalf("%s: sleep %d is %v", backoff, n, got)
			}
		}
	}
}

func TestInvalidOptionsNameEveryFault(t *testing.T) {
	for _, test := range []struct {
		options polled.SpinOptions
		want    []string // one a fault
	}{
		{polled.SpinDefaults(), nil},
		{polled.SpinOptions{Backoff: polled.Fixed, Base: time.Second, Cap: time.Millisecond}, nil}, // cap means nothing
		{polled.SpinOptions{Backoff: "linear", Base: -1, Cap: 0}, []string{`"linear"`, "base", "cap"}},
		{
			polled.SpinOptions{Backoff: polled.None, Base: 1, Cap: 1, Tries: -1, WaitAnyway: true},
			[]string{"tries", "wait-anyway"},
		},
		{
			polled.SpinOptions{Backoff: polled.Exponential, Base: time.Second, Cap: time.Millisecond},
			[]string{"cap 1ms is smaller than base 1s"},
		},
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
