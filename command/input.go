package command

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
	"github.com/lockbench/lockbench/workloads/presets"
)

// input is what a command was given. A flag overrides its environment variable, the variable
// overrides a workload file, and the file overrides the default.
type input struct {
	set     *pflag.FlagSet
	origins workloads.Origins // of values from variables and workload files
	unknown []error           // of arguments that are not flags of the command
}

// input returns the input of a command whose flags have been parsed.
func (a *app) input(set *pflag.FlagSet) *input {
	return &input{set: set, origins: workloads.Origins{}, unknown: a.unknown}
}

// patient is a flag's value that keeps its errors: pflag would stop at the first.
type patient struct {
	pflag.Value
	problems []error
}

// Set sets the value; after an error the value stays as it was.
func (p *patient) Set(text string) error {
	before := p.String()
	err := p.Value.Set(text)
	if _, is := errors.AsType[*strconv.NumError](err); is {
		_ = p.Value.Set(before) // pflag sets 0
		err = fmt.Errorf("%q is not a valid %s", text, p.Type())
	}
	p.problems = append(p.problems, flatten(err)...)
	return nil
}

// collectProblems makes all flags of a set patient.
func collectProblems(set *pflag.FlagSet) {
	set.VisitAll(func(flag *pflag.Flag) {
		flag.Value = &patient{Value: flag.Value}
		flag.DefValue = strings.TrimPrefix(flag.DefValue, "[]") // pflag shows what it does not know
	})
}

// variables sets flags that were not given from their environment variables. An empty variable
// counts as not set.
func (in *input) variables(set *pflag.FlagSet) *input {
	set.VisitAll(func(flag *pflag.Flag) {
		name := "LOCKBENCH_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		given := os.Getenv(name)
		if flag.Changed || given == "" || flag.Name == "help" || flag.Name == "version" {
			return
		}
		in.origins[flag.Name] = name
		flag.Changed = true
		_ = flag.Value.Set(given) // it keeps the error
	})
	return in
}

// workload gives the draft the options of a workload file that neither a flag nor a variable
// sets.
func (in *input) workload(name string, draft *workloads.Draft) error {
	if name == "" {
		return nil
	}
	file, err := presets.Open(name)
	if err != nil {
		return err
	}
	var problems []error
	for _, option := range workloads.Fields() {
		place, flag := file.Origins[option.Name], in.set.Lookup(option.Name)
		switch {
		case place == "" || flag != nil && flag.Changed:
		case flag == nil:
			problems = append(problems, fmt.Errorf("%s: this command has no --%s", place, option.Name))
		default:
			flag.Changed = true
			in.origins[option.Name] = place
			draft.Take(file.Draft, option.Name)
		}
	}
	return errors.Join(problems...)
}

// refuse joins the errors of the flags with others. Each names where its value came from.
func (in *input) refuse(others ...error) error {
	problems := slices.Clone(in.unknown)
	in.set.VisitAll(func(flag *pflag.Flag) {
		if p, ok := flag.Value.(*patient); ok {
			for _, problem := range p.problems {
				problems = append(problems, fmt.Errorf("--%s: %w", flag.Name, problem))
			}
		}
	})
	for _, other := range others {
		problems = append(problems, flatten(other)...)
	}
	for i, problem := range problems {
		problems[i] = in.origins.Rename(problem)
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
		line := strings.Join(strings.Fields(err.Error()), " ")
		if unknown, is := errors.AsType[*strategies.UnknownError](err); is {
			line += words.Suggest("%q", unknown.Name, unknown.Known)
		}
		return []error{errors.New(line)}
	}
	var problems []error
	for _, e := range joined.Unwrap() {
		problems = append(problems, flatten(e)...)
	}
	return problems
}

// prefixed puts a flag before each of an error's errors.
func prefixed(flag string, err error) error {
	problems := flatten(err)
	for i, problem := range problems {
		problems[i] = fmt.Errorf("--%s: %w", flag, problem)
	}
	return errors.Join(problems...)
}

// withoutUnknown removes the arguments that pflag would refuse, unknown flags and a last one without
// its value, and names each: pflag stops at the first.
func withoutUnknown(set *pflag.FlagSet, args []string) (rest []string, problems []error) {
	blank := pflag.NewFlagSet("", pflag.ContinueOnError)
	blank.Usage = func() {}
	set.VisitAll(func(flag *pflag.Flag) {
		blank.FuncP(flag.Name, flag.Shorthand, "", func(string) error { return nil })
		blank.Lookup(flag.Name).NoOptDefVal = flag.NoOptDefVal
	})
	for {
		err := blank.Parse(args)
		var refused interface {
			GetSpecifiedName() string
			GetSpecifiedShortnames() string
		}
		if !errors.As(err, &refused) {
			return args, problems
		}
		name, letters := refused.GetSpecifiedName(), refused.GetSpecifiedShortnames()
		if _, unknown := errors.AsType[*pflag.NotExistError](err); unknown {
			err = unknownFlag(set, name, letters)
		}
		at := slices.IndexFunc(args, func(arg string) bool {
			if letters != "" {
				return !strings.HasPrefix(arg, "--") && strings.HasSuffix(arg, letters)
			}
			return arg == "--"+name || strings.HasPrefix(arg, "--"+name+"=")
		})
		problems = append(problems, err)
		if at < 0 {
			return args, problems
		}
		end := at + 1
		if end < len(args) && !strings.HasPrefix(args[end], "-") && !strings.Contains(args[at], "=") {
			end++ // its value
		}
		args = slices.Delete(slices.Clone(args), at, end)
	}
}

// unknownFlag is the error of an unknown flag. It suggests the one that was probably meant.
func unknownFlag(set *pflag.FlagSet, name, letters string) error {
	if letters != "" {
		return fmt.Errorf("-%c: unknown flag", []rune(letters)[0])
	}
	var names []string
	set.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	return fmt.Errorf("--%s: unknown flag%s", name, words.Suggest("--%s", name, names))
}
