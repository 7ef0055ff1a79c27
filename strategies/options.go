package strategies

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Option describes one option of a strategy for people.
type Option struct {
	Name    string
	Default string
	Help    string
}

// Validator is an options type that can say what is wrong with its values; it
// joins every error it finds.
type Validator interface {
	Validate() error
}

// optionSet is a strategy's options at their defaults: a struct whose fields
// carry the tags opt and help.
type optionSet struct{ defaults any }

func newOptionSet(defaults any) optionSet {
	if reflect.TypeOf(defaults).Kind() != reflect.Struct {
		panic(fmt.Sprintf("strategies: options must be a struct, not %T", defaults))
	}
	for _, field := range reflect.VisibleFields(reflect.TypeOf(defaults)) {
		if name := field.Tag.Get("opt"); name != "" && (!field.IsExported() || !settable(field.Type)) {
			panic(fmt.Sprintf("strategies: option %s of %T cannot be set: it is a %v", name, defaults, field.Type))
		}
	}
	return optionSet{defaults}
}

func (o optionSet) describe() []Option {
	values := reflect.ValueOf(o.defaults)
	var options []Option
	for _, field := range reflect.VisibleFields(values.Type()) {
		if name := field.Tag.Get("opt"); name != "" {
			options = append(options, Option{name, text(values.FieldByIndex(field.Index)), field.Tag.Get("help")})
		}
	}
	return options
}

// text writes a value as decode would read it.
func text(value reflect.Value) string {
	if m, ok := reflect.TypeAssert[encoding.TextMarshaler](value); ok {
		if b, err := m.MarshalText(); err == nil {
			return string(b)
		}
	}
	return fmt.Sprint(value.Interface())
}

// decode returns a copy of the defaults with the settings applied, and the
// settings as they read when written out again. Its error joins every error.
func (o optionSet) decode(settings map[string]string) (any, map[string]string, error) {
	target := reflect.New(reflect.TypeOf(o.defaults)).Elem()
	target.Set(reflect.ValueOf(o.defaults))
	var problems []error
	canonical := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		field, ok := o.field(target, name)
		if !ok {
			problems = append(problems, o.unknown(name))
			continue
		}
		if err := set(field, settings[name]); err != nil {
			problems = append(problems, fmt.Errorf("option %s: %w", name, err))
			continue
		}
		canonical[name] = text(field)
	}
	decoded := target.Interface()
	if v, ok := decoded.(Validator); ok {
		problems = append(problems, v.Validate())
	}
	return decoded, canonical, errors.Join(problems...)
}

// field finds an option's field in a value of the options type.
func (o optionSet) field(options reflect.Value, name string) (reflect.Value, bool) {
	for _, field := range reflect.VisibleFields(options.Type()) {
		if name != "" && field.Tag.Get("opt") == name {
			return options.FieldByIndex(field.Index), true
		}
	}
	return reflect.Value{}, false
}

// set reads a value the way text writes it.
func set(field reflect.Value, value string) error {
	if value == "" && field.Kind() != reflect.String {
		return errors.New("no value given")
	}
	if err := parse(field, value); err != nil {
		return fmt.Errorf("%q is not %s", value, expected(field))
	}
	return nil
}

// parse sets a field of a type that is settable, or leaves it as it is.
func parse(field reflect.Value, value string) error {
	if u, ok := reflect.TypeAssert[encoding.TextUnmarshaler](field.Addr()); ok {
		return u.UnmarshalText([]byte(value))
	}
	switch of := field.Type(); {
	case of == reflect.TypeFor[time.Duration]():
		return assign(func(d time.Duration) { field.SetInt(int64(d)) })(time.ParseDuration(value))
	case field.CanInt():
		return assign(field.SetInt)(strconv.ParseInt(value, 0, of.Bits()))
	case field.CanUint():
		return assign(field.SetUint)(strconv.ParseUint(value, 0, of.Bits()))
	case field.CanFloat():
		return assign(field.SetFloat)(strconv.ParseFloat(value, of.Bits()))
	case of.Kind() == reflect.Bool:
		return assign(field.SetBool)(strconv.ParseBool(value))
	}
	field.SetString(value)
	return nil
}

// assign passes the value to set unless there is an error.
func assign[T any](set func(T)) func(T, error) error {
	return func(value T, err error) error {
		if err == nil {
			set(value)
		}
		return err
	}
}

// settable says whether parse can set a field of that type.
func settable(of reflect.Type) bool {
	value := reflect.New(of)
	_, ok := reflect.TypeAssert[encoding.TextUnmarshaler](value)
	to := value.Elem()
	return ok || to.CanInt() || to.CanUint() || to.CanFloat() || to.Kind() == reflect.Bool ||
		to.Kind() == reflect.String
}

// expected says in plain words what a field takes.
func expected(field reflect.Value) string {
	_, own := reflect.TypeAssert[encoding.TextUnmarshaler](field.Addr())
	switch {
	case own:
		return "a " + field.Type().Name()
	case field.Type() == reflect.TypeFor[time.Duration]():
		return "a duration such as 500us, 5ms or 2s"
	case field.CanInt(), field.CanUint():
		return "a whole number"
	case field.CanFloat():
		return "a number"
	}
	return "true or false"
}

// unknown is the error for an option that does not exist; it names those that do.
func (o optionSet) unknown(name string) error {
	var names []string
	for _, option := range o.describe() {
		names = append(names, option.Name)
	}
	if len(names) == 0 {
		return fmt.Errorf("no option %q: it has none", name)
	}
	return fmt.Errorf("no option %q (there are: %s)", name, strings.Join(names, ", "))
}
