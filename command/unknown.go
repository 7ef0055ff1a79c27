package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/internal/suggest"
	"github.com/lockbench/lockbench/strategies"
)

// unknownFlags names every flag among the arguments that the set does not have. pflag
// stops at the first, or ignores all of them; so unknownFlags parses again without those
// that it has named.
func unknownFlags(set *pflag.FlagSet, args []string) []error {
	var problems []error
	for {
		var unknown *pflag.NotExistError
		if err := blank(set).Parse(args); !errors.As(err, &unknown) {
			return problems
		}
		name, letters := unknown.GetSpecifiedName(), unknown.GetSpecifiedShortnames()
		offends := func(arg string) bool { return arg == "--"+name || strings.HasPrefix(arg, "--"+name+"=") }
		if letters == "" {
			problems = append(problems, fmt.Errorf("--%s: unknown flag%s", name, suggestion(set, name)))
		} else {
			offends = func(arg string) bool { return !strings.HasPrefix(arg, "--") && strings.HasSuffix(arg, letters) }
			problems = append(problems, fmt.Errorf("-%c: unknown flag", []rune(letters)[0]))
		}
		at := slices.IndexFunc(args, offends)
		if at < 0 {
			return problems
		}
		args = slices.Delete(slices.Clone(args), at, at+1)
	}
}

// blank returns a set of the same flags that ignores their values.
func blank(set *pflag.FlagSet) *pflag.FlagSet {
	same := pflag.NewFlagSet("", pflag.ContinueOnError)
	same.Usage = func() {}
	set.VisitAll(func(flag *pflag.Flag) {
		mute := *flag
		mute.Value = &value{set: func(string) error { return nil }}
		same.AddFlag(&mute)
	})
	return same
}

// suggestion suggests the flag that was probably meant.
func suggestion(set *pflag.FlagSet, name string) string {
	var names []string
	set.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	return suggest.Question("--%s", name, names)
}

// suggestedStrategy is the suggestion for an unknown strategy's error; "" for other errors.
func suggestedStrategy(err error) string {
	var unknown *strategies.UnknownError
	if !errors.As(err, &unknown) {
		return ""
	}
	return suggest.Question("%q", unknown.Name, unknown.Known)
}
