package command

import (
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
		set: func(s string) error { return spec.ParseWhole(s, target) },
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
