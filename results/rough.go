package results

import (
	"math"
	"slices"
	"strconv"
)

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
	if low, high, several := s.Range(m); several && !m.Rough && high-low <= near*f.Value {
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

// digits is the number of digits to which CPUPerAcquisition is known; 0 means the usual three.
// IdleCPU, which is subtracted, is itself measured, in half a second. If it is more than a
// third of the CPU, the same error is over 1.5 times as large a share of the result as of
// the CPU; above two thirds, over 3 times.
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

// fewest returns the digits of a result of two figures known to a and b digits; 0 means three.
func fewest(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
