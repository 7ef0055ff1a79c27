package results

import (
	"math"
	"slices"
	"strconv"
)

// NotKnown is what tables print for an unknown figure.
const NotKnown = "–"

// usualDigits is the number of significant digits of a figure in texts, unless fewer are known.
const usualDigits = 3

type unit struct {
	from float64 // the smallest value for which it is used, and its own size
	name string
}

var (
	powers = []unit{{1e9, " G"}, {1e6, " M"}, {1e3, " k"}}
	octets = []unit{{1e9, " GB"}, {1e6, " MB"}, {1e3, " KB"}, {1, " B"}} // powers of 1000
	times  = []unit{{1e9, " s"}, {1e6, " ms"}, {1e3, " µs"}, {1, " ns"}} // of nanoseconds
)

// significant formats a number with this many significant digits, but with at most three decimals. It chooses the
// largest unit in which the rounded number is at least 1: with three digits, 999.7 µs becomes 1.00 ms.
func significant(x float64, digits int, units []unit) string {
	sign := ""
	if x < 0 {
		sign, x = "−", -x
	}
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'e', digits-1, 64), 64)
	if x == 0 {
		return "0"
	}
	in := unit{from: 1}
	for _, u := range slices.Backward(units) {
		if x >= u.from || u.from == 1 {
			in = u
		}
	}
	x /= in.from
	if x < 0.001 {
		return sign + "<0.001" + in.name
	}
	decimals := min(max(0, digits-1-int(math.Floor(math.Log10(x)))), 3)
	return sign + strconv.FormatFloat(x, 'f', decimals, 64) + in.name
}

// Format writes a value of the unit with three significant digits: 1.24 ms, 12.3 KB, 806/s.
func (u Unit) Format(x float64) string { return u.digits(x, usualDigits) }

// digits is like Format, but with this many significant digits.
func (u Unit) digits(x float64, digits int) string {
	switch u {
	case Nanoseconds:
		return significant(x, digits, times)
	case PerSecond:
		return significant(x, digits, powers) + "/s"
	case Percent:
		return significant(x, digits, nil) + " %"
	case Bytes:
		return significant(x, digits, octets)
	}
	if x >= 10_000 {
		return significant(x, digits, powers)
	}
	return significant(x, digits, nil)
}

// Signed is like Format, but writes a whole number without a unit in full up to 99999: −5.00 %, 12345.
func (u Unit) Signed(x float64) string {
	switch {
	case u != Number:
		return u.Format(x)
	case x == math.Trunc(x):
		return Whole(x)
	}
	return Short(x)
}

// Short writes a number with three significant digits: 806, 2.10 M.
func Short(x float64) string { return significant(x, usualDigits, powers) }

// Whole writes a whole number: in full up to 99999, beyond that with three significant digits.
func Whole(x float64) string {
	x = math.Round(x)
	if x < 100_000 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return Short(x)
}

// String writes the duration with three significant digits, marked "≥" if it is a lower
// bound; "–" if it is not known.
func (b *Bound) String() string { return b.figure().Text(Nanoseconds) }

// Text writes the figure in its metric's unit; "–" if it is not known.
func (f *Figure) Text(u Unit) string {
	if f == nil {
		return NotKnown
	}
	return f.in(u, usualDigits)
}

// in writes the figure with at most this many significant digits. It marks a figure with fewer than three known digits
// with "~", and a lower bound with "≥".
func (f *Figure) in(u Unit, digits int) string {
	text := u.digits(f.Value, fewest(digits, f.Digits))
	if f.Digits > 0 {
		text = "~" + text
	}
	return f.bounded(text)
}

// bounded puts "≥" before the text of a figure that is a lower bound.
func (f *Figure) bounded(text string) string {
	if f.AtLeast {
		return "≥ " + text
	}
	return text
}

// fewest returns the number of known digits of a result of two figures. a and b are the numbers of known digits of
// these figures. A number of 0 means the usual three.
func fewest(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
