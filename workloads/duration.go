package workloads

import (
	"fmt"
	"time"
)

// Duration is a time.Duration that reads and writes itself as text ("5ms").
type Duration time.Duration

// String is time.Duration's notation.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes time.Duration's notation.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads time.Duration's notation.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 500us, 5ms or 2s", text)
	}
	*d = Duration(parsed)
	return nil
}
