package command

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/internal/apps/advise"
	"github.com/lockbench/lockbench/internal/driver"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// input collects the values of a command's flags. A flag overrides its environment variable, the variable overrides a
// workload file, and the file overrides the default.
type input struct {
	set     *pflag.FlagSet
	origins workloads.Origins // of values from variables and workload files
	wrong   []error           // errors in environment variables
}

// variable returns the name of a flag's environment variable.
func variable(flag string) string {
	return "LOCKBENCH_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// otherVariables matches the names, without LOCKBENCH_, of variables that are valid although no flag has that name.
var otherVariables = regexp.MustCompile(
	`^(DRIVERS|PORT|[A-Z]+_(IMAGE|SERVER|USER|PASSWORD|AUTH|PORT)|LANGUAGES|TEST_.*|GATE.*)$`)

// mistyped returns an error for each LOCKBENCH_ variable that resembles the name of a flag, or that is named after
// another tool's flag. It ignores other unknown variables, because Kubernetes sets some for a service called lockbench.
func (a *app) mistyped() (problems []error) {
	var given []string
	for _, set := range os.Environ() {
		name, _, _ := strings.Cut(set, "=")
		if flag, ours := strings.CutPrefix(name, "LOCKBENCH_"); ours && !otherVariables.MatchString(flag) {
			given = append(given, flag)
		}
	}
	if len(given) == 0 {
		return nil
	}
	var known []string
	var add func(*cobra.Command)
	add = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			known = append(known, strings.TrimPrefix(variable(flag.Name), "LOCKBENCH_"))
		})
		for _, under := range cmd.Commands() {
			add(under)
		}
	}
	root := a.root()
	add(root)
	for _, name := range given {
		meant, _, _ := strings.Cut(instead(root, strings.ToLower(strings.ReplaceAll(name, "_", "-"))), " ")
		right := strings.TrimPrefix(variable(strings.Trim(meant, "-")), "LOCKBENCH_")
		if right = cmp.Or(right, words.Typo(name, known)); right != "" && !slices.Contains(known, name) {
			problems = append(problems, fmt.Errorf("LOCKBENCH_%s sets no flag, did you mean LOCKBENCH_%s?", name, right))
		}
	}
	return problems
}

// input returns the input of a command whose flags have been parsed. It contains the errors of misspelt variables.
func (a *app) input(set *pflag.FlagSet) *input {
	return &input{set: set, origins: workloads.Origins{}, wrong: a.mistyped()}
}

// patient wraps a flag's value and collects its errors, because pflag stops at the first error.
type patient struct {
	pflag.Value
	set      *pflag.FlagSet
	letter   string // the flag's short form; "" if it has none
	problems []error
}

// kinds maps the types of pflag values to the words that errors use for such values.
var kinds = map[string]string{
	"bool": "true or false", "int": "a whole number", "uint64": "a whole number from 0 on", "float64": "a number",
}

// Set sets the value. If text is invalid, Set keeps the error and returns nil, so that pflag parses the remaining
// flags, too.
func (p *patient) Set(text string) error {
	before := p.String()
	err := p.Value.Set(text)
	if _, is := errors.AsType[*strconv.NumError](err); is {
		_ = p.Value.Set(before) // pflag has set 0
		err = fmt.Errorf("%q is not %s", text, cmp.Or(kinds[p.Type()], "a valid "+p.Type()))
	}
	word, _, _ := strings.Cut(p.letter+text, "=")
	if err != nil && p.letter != "" && p.set.Lookup(word) != nil { // -duration is parsed as -d uration
		err = fmt.Errorf("-%s is parsed as -%s %s, did you mean --%s?", word, p.letter, text, word)
	}
	p.problems = append(p.problems, flatten(err)...)
	return nil
}

// makePatient wraps the value of every flag in a patient.
func makePatient(set *pflag.FlagSet) {
	set.VisitAll(func(flag *pflag.Flag) {
		flag.Value = &patient{Value: flag.Value, set: set, letter: flag.Shorthand}
		flag.DefValue = strings.TrimPrefix(flag.DefValue, "[]") // pflag would show [] as the default of a wrapped list
	})
}

// variables sets each flag that was not given to the value of its environment variable. An empty variable counts as
// unset, except that an empty LOCKBENCH_REDIS is an error: a job whose secret is missing must not measure the default
// server.
func (in *input) variables(set *pflag.FlagSet) *input {
	set.VisitAll(func(flag *pflag.Flag) {
		name := variable(flag.Name)
		given, there := os.LookupEnv(name)
		if flag.Name == "redis" && there && given == "" && !flag.Changed {
			in.wrong = append(in.wrong, fmt.Errorf("%s is set but empty: set it to an address or auto, or unset it", name))
		}
		if flag.Changed || given == "" || flag.Name == "help" || flag.Name == "version" {
			return
		}
		in.origins[flag.Name] = name
		flag.Changed = true
		_ = flag.Value.Set(given) // patient keeps the error
	})
	return in
}

// workload copies options from a workload file to draft. It skips the options that a flag or a variable sets.
func (in *input) workload(name string, draft *workloads.Draft) error {
	if name == "" {
		return nil
	}
	file, err := workloads.Open(name)
	if err != nil {
		return err
	}
	var problems []error
	for _, option := range workloads.Fields() {
		place, flag := file.Origins[option.Name], in.set.Lookup(option.Name)
		switch {
		case place == "" || flag != nil && flag.Changed:
		case flag == nil:
			problems = append(problems, fmt.Errorf("%s: this command has no --%s: leave it out of the file", place, option.Name))
		default:
			flag.Changed = true
			in.origins[option.Name] = place
			draft.Take(file.Draft, option.Name)
		}
	}
	return errors.Join(problems...)
}

// file sets flags from the named file. Flags that are set on the command line or by an environment variable keep their
// values.
func (in *input) file(name string, draft *workloads.Draft) error {
	if name == "" {
		return nil
	}
	text, err := untrusted.ReadFile(name)
	if err != nil {
		return fmt.Errorf("--file: %w", err)
	}
	lines, err := workloads.ReadLines(untrusted.Printable(name), text)
	problems := []error{err}
	given := map[string]bool{}
	for _, line := range lines {
		flag := in.named(line.Key)
		switch {
		case line.Key == "description":
			continue
		case flag == nil:
			known := slices.DeleteFunc(in.names(), func(name string) bool { return slices.Contains(notInFiles, name) })
			err = fmt.Errorf("no such flag%s", words.Suggest("%q", line.Key, known))
		case given[flag.Name]:
			err = fmt.Errorf("the file sets --%s twice", flag.Name)
		case len(line.Values) == 0:
			err = workloads.ErrNotPlain
		case flag.Changed:
			continue
		case startsProgram(flag.Name, line.Values) != "":
			err = fmt.Errorf("%s starts a program, which a file must not do: give it on the command line as --%s",
				startsProgram(flag.Name, line.Values), flag.Name)
		default:
			given[flag.Name], flag.Changed = true, true
			in.origins[flag.Name] = line.Place
			err = give(flag, line.Values, draft)
		}
		for _, problem := range flatten(err) {
			problems = append(problems, fmt.Errorf("%s: %w", line.Place, problem))
		}
	}
	return errors.Join(problems...)
}

// startsProgram returns, quoted, the first value that makes lockbench start a program or a container image, or "" if
// there is none. A file must not have such a value, because it may come from another person.
func startsProgram(flag string, values []string) string {
	for _, value := range values {
		program := flag == "image"
		switch flag {
		case "strategy":
			known, _ := recognised([]string{value}, true)
			_, driven := driver.Cut(known[0])
			program = driven != ""
		case "redis":
			program = strings.HasPrefix(value, "process:") || strings.HasPrefix(value, "image:")
		}
		if program {
			return strconv.Quote(untrusted.Printable(value))
		}
	}
	return ""
}

// notInFiles lists the flags that a file cannot set.
var notInFiles = []string{"file", "help", "version"}

// repeatable lists the flags outside the workload that accept several values.
var repeatable = []string{"strategy", "redis", "threshold", "output"}

// give sets a flag to the values that a file has for it. It returns an error if there are several values and the flag
// accepts only one. A patient flag keeps the errors of invalid values.
func give(flag *pflag.Flag, values []string, draft *workloads.Draft) error {
	ofWorkload := slices.ContainsFunc(workloads.Fields(), func(f workloads.Field) bool { return f.Name == flag.Name })
	switch {
	case ofWorkload:
		return draft.Give(flag.Name, values...)
	case len(values) > 1 && !slices.Contains(repeatable, flag.Name):
		return fmt.Errorf("only one value is allowed, not %d", len(values))
	}
	for _, value := range values {
		if err := flag.Value.Set(value); err != nil {
			return err
		}
	}
	return nil
}

// named returns the flag that a key in a file sets, or nil if there is none. The key may be a plural, such as
// strategies.
func (in *input) named(key string) *pflag.Flag {
	for _, name := range []string{key, strings.TrimSuffix(key, "ies") + "y", strings.TrimSuffix(key, "s")} {
		if flag := in.set.Lookup(name); flag != nil && !slices.Contains(notInFiles, name) {
			return flag
		}
	}
	return nil
}

func (in *input) names() (all []string) {
	in.set.VisitAll(func(flag *pflag.Flag) { all = append(all, flag.Name) })
	return all
}

// refuse joins the errors of the flags, of the environment variables and in others into one error, without duplicates.
// The error about a value from a variable or a file names that source. refuse returns nil if there is no error.
func (in *input) refuse(others ...error) error {
	var problems []error
	in.set.VisitAll(func(flag *pflag.Flag) {
		if p, ok := flag.Value.(*patient); ok {
			problems = append(problems, prefixed(flag.Name, errors.Join(p.problems...)))
		}
	})
	problems = append(problems, in.wrong...)
	problems = flatten(errors.Join(append(problems, others...)...))
	for i, problem := range problems {
		problems[i] = in.origins.Rename(problem)
	}
	seen := map[string]bool{}
	return errors.Join(slices.DeleteFunc(problems, func(problem error) bool { // two flags may have the same fault
		before := seen[problem.Error()]
		seen[problem.Error()] = true
		return before
	})...)
}

// flatten splits a joined error into errors of one line each. To the error of an unknown strategy it adds the name that
// was probably meant.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(joined.Unwrap()...).Error() != err.Error() { // a wrapper that adds text is kept whole
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

// prefixed puts the name of a flag before each of the joined errors.
func prefixed(flag string, err error) error {
	problems := flatten(err)
	for i, problem := range problems {
		problems[i] = fmt.Errorf("--%s: %w", flag, problem)
	}
	return errors.Join(problems...)
}

// complete registers the shell completions of a command's flags. formats are the values for --output.
func complete(cmd *cobra.Command, formats []string) {
	offers := map[string][]string{
		"output":   formats,
		"for":      {string(advise.Efficiency), string(advise.Correctness)},
		"language": advise.Languages(),
		"redis":    {"auto", "container", "process", "redis://", "rediss://"},
		"topology": {"single", "nodes:", "replicas:", "cluster:"},
	}
	for _, field := range workloads.Fields() {
		offers[field.Name] = field.Words
	}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		offer := cobra.FixedCompletions(offers[flag.Name],
			cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)
		switch flag.Name {
		case "strategy":
			offer = completeStrategies
		case "workload":
			offer = cobra.FixedCompletions(workloads.Presets(), cobra.ShellCompDirectiveDefault)
		case "ca-file", "file":
			offer = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
		}
		// The registration fails only for a flag that does not exist or already has a completion.
		if err := cmd.RegisterFlagCompletionFunc(flag.Name, offer); err != nil {
			panic(err)
		}
	})
}

// completeStrategies completes the last name in a list of strategies.
func completeStrategies(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndex(typed, ",")+1]
	var offered []string
	for _, name := range append(strategyNames(), "all") {
		offered = append(offered, before+name)
	}
	return offered, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
