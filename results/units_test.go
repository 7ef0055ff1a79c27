package results

import (
	"testing"
	"time"
)

func TestUnits(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{Nanoseconds.Format(0), "0"},
		{Nanoseconds.Format(850), "850 ns"},
		{Nanoseconds.Format(999_700), "1.00 ms"},
		{Nanoseconds.Format(1_236_000), "1.24 ms"},
		{Nanoseconds.Format(float64(90 * time.Minute)), "5400 s"},
		{Nanoseconds.Format(0.4), "0.400 ns"},
		{Nanoseconds.Format(-562_000), "−562 µs"},
		{Bytes.Format(0.2), "0.200 B"},
		{Bytes.Format(12_345), "12.3 KB"},
		{Short(999.6), "1.00 k"},
		{Short(806.2), "806"},
		{Short(2_104_000), "2.10 M"},
		{Number.Format(0.0004), "<0.001"},
		{Number.Format(0.1234), "0.123"},
		{Number.Format(1), "1.00"},
		{Number.Format(12_345), "12.3 k"},
		{Number.Signed(12_345), "12345"},
		{Percent.Signed(-5), "−5.00 %"},
		{Percent.Format(100), "100 %"},
		{Whole(99_999), "99999"},
		{Whole(1_900_000), "1.90 M"},
		{(*Bound)(nil).String(), "–"},
		{(&Bound{NS: 1500, AtLeast: true}).String(), "≥ 1.50 µs"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}
