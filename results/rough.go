package results

import (
	"math"
	"slices"
	"strconv"
)

// near is how far apart, over their median, the runs of a strategy may lie for a third
// digit to mean something.
const near = 0.1

// Brief writes a metric of the strategy, in its unit, with no more digits than are known:
// three where several runs lie within a tenth of their median, else two, as of one run,
// which tells no spread. Counts are written in full.
func (s Summary) Brief(m Metric) string {
	f := s.over(m, m.shown)
	switch {
	case f == nil:
		return NotKnown
	case m.Whole:
		return f.bounded(Whole(f.Value))
	}
	digits := 2
	if low, high, several := s.Range(m); several && !m.Rough && high-low <= near*f.Value {
		digits = 3
	}
	text := m.Unit.inDigits(f.Value, fewest(digits, f.Digits))
	if f.Digits > 0 {
		text = "~" + text
	}
	return f.bounded(text)
}

// inDigits is Format with so many significant digits.
func (u Unit) inDigits(x float64, digits int) string {
	switch u {
	case Nanoseconds:
		return inDigits(x, digits, times)
	case PerSecond:
		return inDigits(x, digits, metric) + "/s"
	case Percent:
		return inDigits(x, digits, nil) + " %"
	case Bytes:
		return inDigits(x, digits, octets)
	}
	if x >= 10_000 {
		return inDigits(x, digits, metric)
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

// digits are those that CPUPerAcquisition is known to, 0 for the usual three. What was
// subtracted for idle connections and for readings was itself measured, in half a second:
// where it was over a third of the whole, an error in it counts half as much again, and
// over two thirds three times.
func (d *ServerDelta) digits() int {
	if d == nil || d.CPU == nil || d.IdleCPU == nil || *d.CPU <= 0 {
		return 0
	}
	switch subtracted := *d.IdleCPU / *d.CPU; {
	case subtracted > 2./3:
		return 1
	case subtracted > 1./3:
		return 2
	default:
		return 0
	}
}

// fewest are the digits of what is made of figures known to so many, 0 being three.
func fewest(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
