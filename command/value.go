package command

import (
	"encoding"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/workloads/spec"
)

// value is a flag's value. Its Set never fails but remembers what is wrong:
// parsing would end at the first fault, and all of them are to be named.
type value struct {
	kind  string // in the help
	text  func() string
	set   func(string) error
	fault error
}

func (v *value) String() string {
	if v.text == nil { // pflag asks the zero value
		return ""
	}
	return v.text()
}

// Set takes the value, or keeps the fault and the value it had.
func (v *value) Set(s string) error {
	v.fault = v.set(s)
	return nil
}

func (v *value) Type() string { return v.kind }

func intValue(target *int) *value {
	return &value{
		kind: "n", text: func() string { return strconv.Itoa(*target) },
		set: func(s string) error { return parseWhole(s, target) },
	}
}

func int64Value(target *int64) *value {
	return &value{
		kind: "n", text: func() string { return strconv.FormatInt(*target, 10) },
		set: func(s string) error { return parseWhole(s, target) },
	}
}

func parseWhole[N int | int64](s string, target *N) error {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) || err == nil && int64(N(n)) != n:
		return fmt.Errorf("%s is out of range", s)
	case err != nil:
		return fmt.Errorf("%q is not a whole number", s)
	}
	*target = N(n)
	return nil
}

func durationValue(target *spec.Duration) *value { return ofText("duration", target) }

// textual is a value that reads and writes itself as text.
type textual interface {
	encoding.TextUnmarshaler
	fmt.Stringer
}

// ofText is set when the flag is given.
func ofText(kind string, target textual) *value {
	return &value{
		kind: kind, text: target.String,
		set: func(s string) error { return target.UnmarshalText([]byte(s)) },
	}
}

// optionalDuration stays nil unless it is given.
func optionalDuration(target **spec.Duration) *value {
	return &value{
		kind: "duration", text: func() string { return "" },
		set: func(s string) error {
			var d spec.Duration
			if err := d.UnmarshalText([]byte(s)); err != nil {
				return err
			}
			*target = &d
			return nil
		},
	}
}

func textValue(kind string, target *string) *value {
	return &value{
		kind: kind, text: func() string { return *target },
		set: func(s string) error { *target = s; return nil },
	}
}

// listValue collects what a repeatable flag is given.
func listValue(kind string, target *[]string) *value {
	return &value{
		kind: kind, text: func() string { return strings.Join(*target, ",") },
		set: func(s string) error { *target = append(*target, s); return nil },
	}
}

// switchValue is on when the flag is given without a value.
func switchValue(target *bool) *value {
	return &value{
		kind: "bool", text: func() string { return strconv.FormatBool(*target) },
		set: func(s string) error {
			on, err := strconv.ParseBool(s)
			if err != nil {
				return fmt.Errorf("%q is neither true nor false", s)
			}
			*target = on
			return nil
		},
	}
}
