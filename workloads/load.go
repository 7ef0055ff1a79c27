package workloads

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Rate is a number of arrivals a second. It reads and writes itself as text, "2000/s"; also
// per m or h. 0 means none.
type Rate float64

// String is the text form.
func (r Rate) String() string { return number(float64(r)) + "/s" }

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// MarshalText writes the text form.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the text form; a bare number is per second.
func (r *Rate) UnmarshalText(text []byte) error {
	number, unit, _ := strings.Cut(string(text), "/")
	per, known := map[string]time.Duration{"": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour}[unit]
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || !known || !(value >= 0 && value <= 1e9) {
		return fmt.Errorf("%q is not a rate such as 2000/s", text)
	}
	*r = Rate(value / per.Seconds())
	return nil
}

// Arrivals is how the starts of an open loop are spaced.
type Arrivals string

const (
	// ArrivalsConstant spaces them evenly.
	ArrivalsConstant Arrivals = "constant"
	// ArrivalsPoisson draws exponential gaps: independent users.
	ArrivalsPoisson Arrivals = "poisson"
)

// Stage is a part of the window in which the load changes linearly from the load at the end of
// the stage before to Target. It reads and writes itself as text:
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
	if s.Open {
		return s.Duration.String() + ":" + Rate(s.Target).String()
	}
	return s.Duration.String() + ":" + number(s.Target)
}

// MarshalText writes the text form.
func (s Stage) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the text form.
func (s *Stage) UnmarshalText(text []byte) error {
	length, target, found := strings.Cut(string(text), ":")
	if !found {
		return fmt.Errorf("%q is not a stage such as 30s:500, or 30s:2000/s of an open loop", text)
	}
	var parsed Stage
	if err := parsed.Duration.UnmarshalText([]byte(length)); err != nil {
		return err
	}
	if parsed.Duration <= 0 {
		return fmt.Errorf("%q: the length of a stage must be positive", text)
	}
	if strings.Contains(target, "/") {
		var rate Rate
		if err := rate.UnmarshalText([]byte(target)); err != nil {
			return err
		}
		*s = Stage{parsed.Duration, float64(rate), true}
		return nil
	}
	clients, err := parse(target, reflect.TypeFor[int]())
	if err != nil {
		return err
	}
	if clients.Int() < 0 {
		return fmt.Errorf("%q: the number of clients must not be negative", text)
	}
	*s = Stage{Duration: parsed.Duration, Target: float64(clients.Int())}
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
