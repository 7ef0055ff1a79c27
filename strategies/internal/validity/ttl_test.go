package validity_test

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies/internal/validity"
)

// A lease is never valid for longer than Redis keeps it, which counts whole milliseconds.
func TestTTL(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{
		time.Millisecond: time.Millisecond, 1999 * time.Microsecond: time.Millisecond, time.Hour + 1: time.Hour,
	} {
		if got, err := validity.TTL(asked); got != want || err != nil {
			t.Errorf("of %v it is %v, %v, want %v", asked, got, err, want)
		}
	}
	for _, asked := range []time.Duration{-time.Hour, -1, 0, time.Millisecond - 1} {
		if got, err := validity.TTL(asked); err == nil {
			t.Errorf("%v was taken, as %v", asked, got)
		}
	}
}
