package workloads

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Stage is a part of the window in which the load goes linearly from what it was
// at the end of the stage before to its own. It reads and writes itself as text:
//
//	30s:500      to 500 active clients of a closed loop
//	30s:2000/s   to 2000 arrivals a second of an open one
type Stage struct {
	Duration Duration
	Target   float64 // clients, or arrivals a second
	Open     bool    // the latter
}

// String is the text form.
func (s Stage) String() string {
	text := s.Duration.String() + ":" + strconv.FormatFloat(s.Target, 'g', -1, 64)
	if s.Open {
		text += "/s"
	}
	return text
}

// MarshalText writes the text form.
func (s Stage) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the text form.
func (s *Stage) UnmarshalText(text []byte) error {
	length, target, found := strings.Cut(string(text), ":")
	var parsed Stage
	if !found {
		return fmt.Errorf("%q is not a stage such as 30s:500, or 30s:2000/s of an open loop", text)
	}
	if err := parsed.Duration.UnmarshalText([]byte(length)); err != nil {
		return err
	}
	if parsed.Duration <= 0 {
		return fmt.Errorf("%q: a stage takes some time", text)
	}
	if strings.Contains(target, "/") {
		var rate Rate
		if err := rate.UnmarshalText([]byte(target)); err != nil {
			return err
		}
		parsed.Target, parsed.Open = float64(rate), true
	} else {
		var clients int
		if err := ParseWhole(target, &clients); err != nil {
			return err
		}
		if clients < 0 {
			return fmt.Errorf("%q: there cannot be fewer than no clients", text)
		}
		parsed.Target = float64(clients)
	}
	*s = parsed
	return nil
}

// Stages follow each other from the opening of the window on. The first has its
// own load throughout, and the warm-up too; what follows the last keeps its load.
type Stages []Stage

// Length is that of all together.
func (s Stages) Length() Duration {
	var sum Duration
	for _, stage := range s {
		sum += stage.Duration
	}
	return sum
}

// Most is the largest load.
func (s Stages) Most() float64 {
	var most float64
	for _, stage := range s {
		most = max(most, stage.Target)
	}
	return most
}

// Reach is the first instant from at on, in time since the window opened, at
// which the load is n or more; false if that is never again.
func (s Stages) Reach(at time.Duration, n float64) (time.Duration, bool) {
	if len(s) == 0 {
		return 0, false
	}
	from, begin := s[0].Target, time.Duration(0)
	for _, stage := range s {
		length := time.Duration(stage.Duration)
		offset := max(at-begin, 0)
		if at < begin+length {
			slope := (stage.Target - from) / float64(length)
			switch level := from + slope*float64(offset); {
			case level >= n:
				return max(at, begin), true
			case stage.Target >= n:
				return begin + time.Duration(math.Ceil((n-from)/slope)), true
			}
		}
		from, begin = stage.Target, begin+length
	}
	return max(at, begin), from >= n
}

// After is the instant by which so many more arrivals than by the instant at are
// expected, both in nanoseconds since the window opened: with Λ the integral of
// the rate, it is Λ⁻¹(Λ(at) + arrivals). Exponential arrivals of mean 1 make it
// the next event of a Poisson process of changing rate (Çinlar, Introduction to
// Stochastic Processes, 1975, §4.7). It is +∞ if there will not be so many.
func (s Stages) After(at, arrivals float64) float64 {
	if len(s) == 0 {
		return math.Inf(1)
	}
	from, begin := s[0].Target, 0.0
	if at < 0 { // warm-up
		if rate := from / 1e9; arrivals <= -at*rate {
			return at + arrivals/rate
		} else {
			arrivals -= -at * rate
			at = 0
		}
	}
	for _, stage := range s {
		length := float64(stage.Duration)
		if at < begin+length {
			slope := (stage.Target - from) / length / 1e9 // per ns, per ns
			rate := from/1e9 + slope*(at-begin)
			left := begin + length - at
			if expected := (rate + stage.Target/1e9) / 2 * left; arrivals > expected {
				arrivals -= expected
				at = begin + length
			} else {
				return at + elapse(rate, slope, arrivals)
			}
		}
		from, begin = stage.Target, begin+length
	}
	if from == 0 {
		return math.Inf(1)
	}
	return at + arrivals*1e9/from
}

// elapse solves rate·t + slope·t²/2 = arrivals for t, in the form that stays
// exact for small slopes.
func elapse(rate, slope, arrivals float64) float64 {
	if arrivals <= 0 {
		return 0
	}
	root := math.Sqrt(max(0, rate*rate+2*slope*arrivals))
	return 2 * arrivals / (rate + root)
}
