package strategies

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Option describes one option of a strategy, for help texts.
type Option struct {
	Name    string
	Default string
	Help    string
}

// optionsOf returns flags for the fields of a struct that have the tags opt and help, in the order of the fields. It
// panics if options is not a pointer to a struct, or if such a field has a type that no flag can set.
func optionsOf(options reflect.Value) []*flag.Flag {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	var all []*flag.Flag
	for _, field := range reflect.VisibleFields(options.Type().Elem()) {
		name, help := field.Tag.Get("opt"), field.Tag.Get("help")
		if name == "" {
			continue
		}
		switch value := options.Elem().FieldByIndex(field.Index).Addr(); to := value.Interface().(type) {
		case *time.Duration:
			set.DurationVar(to, name, *to, help)
		case *int:
			set.IntVar(to, name, *to, help)
		case *float64:
			set.Float64Var(to, name, *to, help)
		case *bool:
			set.BoolVar(to, name, *to, help)
		default: // Convert panics unless the field's type is a string type
			text := value.Convert(reflect.TypeFor[*string]()).Interface().(*string)
			set.StringVar(text, name, *text, help)
		}
		all = append(all, set.Lookup(name))
	}
	return all
}

func copied(options any) reflect.Value {
	to := reflect.New(reflect.TypeOf(options))
	to.Elem().Set(reflect.ValueOf(options))
	return to
}

// Options describes the strategy's options and their defaults, in the order of the struct's fields.
func (s Strategy) Options() []Option {
	var options []Option
	for _, o := range optionsOf(copied(s.defaults)) {
		options = append(options, Option{o.Name, o.DefValue, o.Usage})
	}
	return options
}

// decode returns a copy of the defaults with the settings applied, and the settings in canonical form. It reports all
// bad settings, joined in one error.
func (s Strategy) decode(settings map[string]string) (any, map[string]string, error) {
	target := copied(s.defaults)
	options := optionsOf(target)
	var problems []error
	canonical := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		i := slices.IndexFunc(options, func(o *flag.Flag) bool { return o.Name == name })
		if i < 0 {
			problems = append(problems, unknown(name, options))
			continue
		}
		value := options[i].Value
		if err := value.Set(settings[name]); err != nil {
			_ = value.Set(options[i].DefValue) // back to the default, so that Validate reports no second error
			problems = append(problems, fmt.Errorf("option %s: %q is not %s", name, settings[name], expected(value)))
			continue
		}
		canonical[name] = value.String()
	}
	decoded := target.Elem().Interface()
	if v, ok := decoded.(interface{ Validate() error }); ok {
		problems = append(problems, v.Validate())
	}
	return decoded, canonical, errors.Join(problems...)
}

// expected returns a description of the values that an option accepts, for error messages.
func expected(option flag.Value) string {
	switch option.(flag.Getter).Get().(type) {
	case time.Duration:
		return "a duration such as 500us, 5ms or 2s"
	case int:
		return "a whole number"
	case float64:
		return "a number"
	}
	return "true or false"
}

// unknown returns the error for an option that does not exist. The error lists the options that exist.
func unknown(name string, options []*flag.Flag) error {
	if len(options) == 0 {
		return fmt.Errorf("no option %q: the strategy has no options, so leave the option out", name)
	}
	var names []string
	for _, o := range options {
		names = append(names, o.Name)
	}
	return fmt.Errorf("no option %q (there are: %s)", name, strings.Join(names, ", "))
}
