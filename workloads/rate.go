package workloads

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Rate is a number of arrivals a second. It reads and writes itself as text, "2000/s"; also
// per m or h. 0 means none.
type Rate float64

// String is the text form.
func (r Rate) String() string { return strconv.FormatFloat(float64(r), 'g', -1, 64) + "/s" }

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

// ArrivalKinds returns all kinds.
func ArrivalKinds() []Arrivals { return []Arrivals{ArrivalsConstant, ArrivalsPoisson} }
