package results

import (
	"math"
	"strconv"
)

// unknown is how tables print a figure that could not be had.
const unknown = "–"

// significant writes a figure with three significant digits: 0.123, 1.23, 12.3,
// 123, 1234. What would need more than three decimals is "<0.001".
func significant(x float64) string {
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

// rounded keeps three significant digits, so that a unit is chosen for what
// will be printed: 999.7 µs is 1.00 ms.
func rounded(x float64) float64 {
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'e', 2, 64), 64)
	return x
}

type unit struct {
	from float64 // the least size it is used for, and its own size
	name string
}

var (
	metric = []unit{{1e9, " G"}, {1e6, " M"}, {1e3, " k"}}
	octets = []unit{{1e9, " GB"}, {1e6, " MB"}, {1e3, " KB"}, {1, " B"}} // powers of 1000
	times  = []unit{{1e9, " s"}, {1e6, " ms"}, {1e3, " µs"}, {1, " ns"}} // of nanoseconds
)

func inUnits(x float64, units []unit) string {
	for _, u := range units {
		if math.Abs(rounded(x)) >= u.from {
			return significant(x/u.from) + u.name
		}
	}
	return significant(x)
}

// twoDigits writes nanoseconds of which a third digit is not known.
func twoDigits(x float64) string {
	if x <= 0 {
		return nanoseconds(x)
	}
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'e', 1, 64), 64)
	for _, u := range times {
		if x >= u.from {
			return strconv.FormatFloat(x/u.from, 'f', max(0, 1-int(math.Floor(math.Log10(x/u.from)))), 64) + u.name
		}
	}
	return nanoseconds(x)
}

func number(x float64) string      { return inUnits(x, metric) }
func nanoseconds(x float64) string { return inUnits(x, times) }
func percent(x float64) string     { return significant(x) + " %" }

// sized has no smaller unit: a fraction of a byte an acquisition is still bytes.
func sized(x float64) string {
	if x > 0 && x < 1 {
		return significant(x) + " B"
	}
	return inUnits(x, octets)
}

// count writes a whole number in full up to 99999.
func count(n int64) string {
	if n < 100_000 {
		return strconv.FormatInt(n, 10)
	}
	return number(float64(n))
}

// known writes a figure by its unit, or that it is not known.
func known(x *float64, write func(float64) string) string {
	if x == nil {
		return unknown
	}
	return write(*x)
}

// String writes the duration with three significant digits, marked "≥" when it
// is a lower bound, or "–" when it is not known.
func (b *Bound) String() string {
	if b == nil {
		return unknown
	}
	return b.written(nanoseconds)
}

func (b *Bound) written(write func(float64) string) string {
	s := write(float64(b.NS))
	if b.AtLeast {
		return "≥ " + s
	}
	return s
}
