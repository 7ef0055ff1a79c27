package command

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// source knows where flags got their values: flags go before environment
// variables, and those before defaults.
type source struct {
	set      *pflag.FlagSet
	variable map[string]bool // flags set by their environment variable
}

// variableOf is the environment variable that stands in for a flag.
func variableOf(flag string) string {
	return "LOCKBENCH_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// readEnvironment sets the flags that are not given by their variables. A
// variable that is empty counts as not set.
func (s *source) readEnvironment() {
	s.variable = map[string]bool{}
	s.set.VisitAll(func(flag *pflag.Flag) {
		v, ours := flag.Value.(*value)
		given := os.Getenv(variableOf(flag.Name))
		if !ours || flag.Changed || given == "" {
			return
		}
		s.variable[flag.Name] = true
		flag.Changed = true
		_ = v.Set(given) // it remembers its fault
	})
}

// faults are those of values that could not be read, in the order of the flags.
func (s *source) faults() []error {
	var faults []error
	s.set.VisitAll(func(flag *pflag.Flag) {
		if v, ours := flag.Value.(*value); ours && v.fault != nil {
			faults = append(faults, fmt.Errorf("--%s: %w", flag.Name, v.fault))
		}
	})
	return faults
}

// rename lets a fault that begins with a flag's name speak of the variable where
// that is what the user has set.
func (s *source) rename(fault error) error {
	text := fault.Error()
	name, rest := text, ""
	if end := strings.IndexAny(text, " :"); end >= 0 {
		name, rest = text[:end], text[end:]
	}
	if flag := strings.TrimPrefix(name, "--"); s.variable[flag] {
		return errors.New(variableOf(flag) + rest)
	}
	return fault
}

// each takes a joined error apart and puts each fault on one line.
func each(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(joined.Unwrap()...).Error() != err.Error() { // with words of its own
		return []error{errors.New(strings.Join(strings.Fields(err.Error()), " "))}
	}
	var faults []error
	for _, e := range joined.Unwrap() {
		faults = append(faults, each(e)...)
	}
	return faults
}

// has says whether a flag or its variable was given.
func (s *source) has(flag string) bool { return s.set.Changed(flag) }
