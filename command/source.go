package command

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/workloads"
	"github.com/lockbench/lockbench/workloads/presets"
)

// source knows where flags got their values. A flag goes before its environment
// variable, the variable before a workload file, and the file before the default.
type source struct {
	set     *pflag.FlagSet
	origins workloads.Origins // of values from variables and workload files
}

// variableOf is the environment variable that stands in for a flag.
func variableOf(flag string) string {
	return "LOCKBENCH_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// readEnvironment sets flags that were not given from their variables. An empty variable
// counts as not set.
func (s *source) readEnvironment() {
	s.origins = workloads.Origins{}
	s.set.VisitAll(func(flag *pflag.Flag) {
		v, ours := flag.Value.(*value)
		name := variableOf(flag.Name)
		given := os.Getenv(name)
		if !ours || flag.Changed || given == "" {
			return
		}
		s.origins[flag.Name] = name
		flag.Changed = true
		_ = v.Set(given) // v keeps the error
	})
}

// problems returns the errors of variables and of values that could not be read, in the
// order of the flags.
func (s *source) problems() []error {
	var problems []error
	s.set.VisitAll(func(flag *pflag.Flag) {
		if v, ours := flag.Value.(*value); ours {
			for _, problem := range flatten(v.problem) {
				problems = append(problems, fmt.Errorf("--%s: %w", flag.Name, problem))
			}
		}
	})
	return problems
}

// named joins errors. Each names where its value came from.
func (s *source) named(problems []error) error {
	for i, problem := range problems {
		problems[i] = s.origins.Rename(problem)
	}
	return errors.Join(problems...)
}

// readWorkload gives the draft the options of a workload file that neither a flag nor a
// variable sets.
func (s *source) readWorkload(name string, draft *workloads.Draft) error {
	file, err := presets.Open(name)
	if err != nil {
		return err
	}
	var problems []error
	for _, option := range file.Options {
		flag := s.set.Lookup(option.Name)
		if flag == nil {
			problems = append(problems, fmt.Errorf("%s: this command has no --%s", file.Place(option), option.Name))
			continue
		}
		if flag.Changed {
			continue
		}
		flag.Changed = true
		s.origins[option.Name] = file.Place(option)
		if err := draft.Give(option.Name, option.Values...); err != nil {
			return err // presets.Open has checked the values
		}
	}
	return errors.Join(problems...)
}

// flatten splits a joined error, and puts each error on one line. To an unknown strategy's
// error it adds the name that was probably meant.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(joined.Unwrap()...).Error() != err.Error() { // it adds words of its own
		return []error{errors.New(strings.Join(strings.Fields(err.Error()), " ") + suggestedStrategy(err))}
	}
	var problems []error
	for _, e := range joined.Unwrap() {
		problems = append(problems, flatten(e)...)
	}
	return problems
}

// problems joins the errors of a command's flags with others. Each error names where its
// value came from.
func (a *app) problems(given source, others ...error) error {
	problems := append(unknownFlags(given.set, a.args), given.problems()...)
	for _, other := range others {
		problems = append(problems, flatten(other)...)
	}
	return given.named(problems)
}
