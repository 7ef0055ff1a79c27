package command

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/workloads"
)

// value is a flag's value. Its Set never fails but keeps the error: parsing would stop at
// the first one, and all are to be named.
type value struct {
	kind    string // in the help
	text    func() string
	set     func(string) error
	problem error
}

func (v *value) String() string {
	if v.text == nil { // pflag asks the zero value
		return ""
	}
	return v.text()
}

// Set sets the value; on an error it keeps the error and the old value.
func (v *value) Set(s string) error {
	v.problem = errors.Join(v.problem, v.set(s))
	return nil
}

func (v *value) Type() string { return v.kind }

func intValue(target *int) *value {
	return &value{
		kind: "n", text: func() string { return strconv.Itoa(*target) },
		set: func(s string) error { return workloads.ParseWhole(s, target) },
	}
}

func textValue(kind string, target *string) *value {
	return &value{
		kind: kind, text: func() string { return *target },
		set: func(s string) error { *target = s; return nil },
	}
}

// instantValue accepts a future instant, or a time from now.
func instantValue(target *time.Time) *value {
	return &value{
		kind: "instant", text: func() string { return "" },
		set: func(s string) error {
			at, err := time.Parse(time.RFC3339, s)
			if after, isDelay := strings.CutPrefix(s, "+"); isDelay {
				var delay time.Duration
				delay, err = time.ParseDuration(after)
				at = time.Now().Add(delay)
			}
			switch {
			case err != nil:
				return fmt.Errorf("%q is neither an instant, such as 2026-03-01T12:30:00Z, nor a time from now, such as +5s", s)
			case !at.After(time.Now()):
				return fmt.Errorf("%s is over", s)
			}
			*target = at
			return nil
		},
	}
}

// listValue collects the values of a repeatable flag.
func listValue(kind string, target *[]string) *value {
	return &value{
		kind: kind, text: func() string { return strings.Join(*target, ",") },
		set: func(s string) error { *target = append(*target, s); return nil },
	}
}

// addSwitch adds a flag that is on when it is given without a value.
func addSwitch(set *pflag.FlagSet, target *bool, name, short, help string) {
	set.VarP(switchValue(target), name, short, help)
	set.Lookup(name).NoOptDefVal = "true"
}

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

// percentage parses a share such as 5% or 0.05. It refuses a bare 5, which could mean
// 5 % or 500 %.
func percentage(target *float64) *value {
	return &value{
		kind: "percent", text: func() string { return strconv.FormatFloat(*target*100, 'g', 4, 64) + "%" },
		set: func(s string) error {
			digits, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
			number, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
			switch {
			case err != nil || number != number:
				return fmt.Errorf("%q is not a percentage such as 5%%", s)
			case percent:
				number /= 100
			case number >= 1:
				return fmt.Errorf("%q is %g %% as it stands, write %s%% for a percentage", s, number*100, digits)
			}
			if number < 0 || number >= 1 {
				return fmt.Errorf("%q is not from 0%% to 99%%", s)
			}
			*target = number
			return nil
		},
	}
}
