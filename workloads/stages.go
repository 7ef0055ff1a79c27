package workloads

import (
	"fmt"
	"strconv"
	"strings"
)

// Stage is a part of the window in which the load goes linearly from the load at
// the end of the stage before to Target. It reads and writes itself as text:
//
//	30s:500      to 500 active clients of a closed loop
//	30s:2000/s   to 2000 arrivals a second of an open one
type Stage struct {
	Duration Duration
	Target   float64 // clients, or arrivals a second
	Open     bool    // Target is arrivals a second
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

// Stages follow each other from the opening of the window on. The first has its own load
// throughout, also in the warm-up; after the last stage its load stays.
type Stages []Stage

// Length is the length of all stages together.
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
