package results

import (
	"math"
	"strconv"
)

// inDigits writes nanoseconds with so many significant digits.
func inDigits(ns float64, digits int) string {
	ns, _ = strconv.ParseFloat(strconv.FormatFloat(ns, 'e', digits-1, 64), 64)
	unit := times[len(times)-1]
	for _, u := range times {
		if ns >= u.from {
			unit = u
			break
		}
	}
	x := ns / unit.from
	decimals := 0
	if x > 0 {
		decimals = max(0, digits-1-int(math.Floor(math.Log10(x))))
	}
	return strconv.FormatFloat(x, 'f', decimals, 64) + unit.name
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
