package results

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// NotKnown is what tables print for an unknown figure.
const NotKnown = "–"

// Significant writes a figure with three significant digits: 0.123, 1.23, 12.3, 123, 1234. A
// figure below 0.001 is "<0.001".
func Significant(x float64) string {
	if x == 0 {
		return "0"
	}
	if math.Abs(x) < 0.001 {
		return "<0.001"
	}
	x = rounded(x)
	decimals := 2 - int(math.Floor(math.Log10(math.Abs(x))))
	return strconv.FormatFloat(x, 'f', min(max(decimals, 0), 3), 64)
}

// rounded keeps three significant digits, so that the unit fits the printed value: 999.7 µs
// is 1.00 ms.
func rounded(x float64) float64 {
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'e', 2, 64), 64)
	return x
}

type unit struct {
	from float64 // the smallest value for which it is used, and its own size
	name string
}

var (
	powers = []unit{{1e9, " G"}, {1e6, " M"}, {1e3, " k"}}
	octets = []unit{{1e9, " GB"}, {1e6, " MB"}, {1e3, " KB"}, {1, " B"}} // powers of 1000
	times  = []unit{{1e9, " s"}, {1e6, " ms"}, {1e3, " µs"}, {1, " ns"}} // of nanoseconds
)

func inUnits(x float64, units []unit) string {
	for _, u := range units {
		if math.Abs(rounded(x)) >= u.from {
			return Significant(x/u.from) + u.name
		}
	}
	return Significant(x)
}

// Format writes a value of the unit with three significant digits: 1.24 ms, 12.3 KB, 806/s.
func (u Unit) Format(x float64) string {
	switch u {
	case Nanoseconds:
		return inUnits(x, times)
	case PerSecond:
		return Short(x) + "/s"
	case Percent:
		return Significant(x) + " %"
	case Bytes:
		if x > 0 && x < 1 { // a fraction of a byte per acquisition stays in bytes
			return Significant(x) + " B"
		}
		return inUnits(x, octets)
	}
	return Significant(x)
}

// Signed is Format for a value that may be negative. A whole count is written in full:
// −5.00 %, 12345.
func (u Unit) Signed(x float64) string {
	sign := ""
	if x < 0 {
		sign, x = "−", -x
	}
	switch {
	case u != Number:
		return sign + u.Format(x)
	case x == math.Trunc(x):
		return sign + Whole(x)
	}
	return sign + Short(x)
}

// Plain writes three significant digits without zeros at the end, and numbers from 1000 on
// as whole numbers: 0.05, 12, 28000.
func Plain(x float64) string {
	if math.Abs(x) >= 1000 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strings.TrimSuffix(strconv.FormatFloat(x, 'g', 3, 64), "e+00")
}

// Short writes a number with three significant digits: 806, 2.10 M.
func Short(x float64) string { return inUnits(x, powers) }

// Whole writes a whole number, in full up to 99999.
func Whole(x float64) string {
	n := int64(math.Round(x))
	if n < 100_000 {
		return strconv.FormatInt(n, 10)
	}
	return Short(float64(n))
}

// String writes the duration with three significant digits, marked "≥" if it is a lower
// bound; "–" if it is not known.
func (b *Bound) String() string { return b.figure().Text(Nanoseconds) }

// Text writes the figure in its metric's unit; "–" if it is not known.
func (f *Figure) Text(u Unit) string {
	switch {
	case f == nil:
		return NotKnown
	case u == Nanoseconds && f.Digits > 0:
		return f.bounded("~" + u.inDigits(f.Value, f.Digits))
	}
	return f.bounded(u.Format(f.Value))
}

// bounded marks a figure's text if the figure is a lower bound.
func (f *Figure) bounded(text string) string {
	if f.AtLeast {
		return "≥ " + text
	}
	return text
}

// near is the largest spread of a strategy's runs, divided by their median, at which a third
// digit is meaningful.
const near = 0.1

// Brief writes a metric of the strategy in its unit with no more digits than are known: three
// if several runs are within a tenth of their median, else two. A single run has no known
// spread, so it gets two. Counts are written in full.
func (s Summary) Brief(m Metric) string {
	f := s.over(m, m.shown)
	switch {
	case f == nil:
		return NotKnown
	case m.Whole:
		return f.bounded(Whole(f.Value))
	}
	digits := 2
	if low, high, several := s.Range(m); several && m.is&rough == 0 && high-low <= near*f.Value {
		digits = 3
	}
	text := m.Unit.inDigits(f.Value, fewest(digits, f.Digits))
	if f.Digits > 0 {
		text = "~" + text
	}
	return f.bounded(text)
}

// inDigits is Format with this many significant digits.
func (u Unit) inDigits(x float64, digits int) string {
	switch u {
	case Nanoseconds:
		return inDigits(x, digits, times)
	case PerSecond:
		return inDigits(x, digits, powers) + "/s"
	case Percent:
		return inDigits(x, digits, nil) + " %"
	case Bytes:
		return inDigits(x, digits, octets)
	}
	if x >= 10_000 {
		return inDigits(x, digits, powers)
	}
	return inDigits(x, digits, nil)
}

func inDigits(x float64, digits int, units []unit) string {
	sign := ""
	if x < 0 {
		sign, x = "−", -x
	}
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'e', digits-1, 64), 64)
	in := unit{from: 1}
	for _, u := range slices.Backward(units) {
		if x >= u.from || u.from == 1 {
			in = u
		}
	}
	x /= in.from
	decimals := 0
	if x > 0 {
		decimals = max(0, digits-1-int(math.Floor(math.Log10(x))))
	}
	return sign + strconv.FormatFloat(x, 'f', decimals, 64) + in.name
}

// fewest returns the digits of a result of two figures known to a and b digits; 0 means three.
func fewest(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
