package strategies

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
)

// Option describes one option of a strategy for people.
type Option struct {
	Name    string
	Default string
	Help    string
}

// Validator is an options type that can say what is wrong with its values; it
// joins every fault it finds.
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
	return optionSet{defaults}
}

func (o optionSet) describe() []Option {
	values := reflect.ValueOf(o.defaults)
	var options []Option
	for i, field := range reflect.VisibleFields(values.Type()) {
		if name := field.Tag.Get("opt"); name != "" {
			options = append(options, Option{name, text(values.Field(i)), field.Tag.Get("help")})
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
// settings as they read when written out again. Its error joins every fault.
func (o optionSet) decode(settings map[string]string) (any, map[string]string, error) {
	target := reflect.New(reflect.TypeOf(o.defaults)).Elem()
	target.Set(reflect.ValueOf(o.defaults))
	var faults []error
	canonical := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		field, ok := o.field(target, name)
		if !ok {
			faults = append(faults, o.unknown(name))
			continue
		}
		if err := set(field, settings[name]); err != nil {
			faults = append(faults, fmt.Errorf("option %s: %w", name, err))
			continue
		}
		canonical[name] = text(field)
	}
	decoded := target.Interface()
	if v, ok := decoded.(Validator); ok {
		faults = append(faults, v.Validate())
	}
	return decoded, canonical, errors.Join(faults...)
}

// field finds an option's field in a value of the options type.
func (o optionSet) field(options reflect.Value, name string) (reflect.Value, bool) {
	for i, field := range reflect.VisibleFields(options.Type()) {
		if name != "" && field.Tag.Get("opt") == name {
			return options.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// set reads a value the way text writes it.
func set(field reflect.Value, value string) error {
	if value == "" && field.Kind() != reflect.String {
		return errors.New("no value given")
	}
	decoder, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result:           field.Addr().Interface(),
		WeaklyTypedInput: true,
		DecodeHook: mapstructure.ComposeDecodeHookFunc(
			mapstructure.TextUnmarshallerHookFunc(),
			mapstructure.StringToTimeDurationHookFunc(),
		),
	})
	if err != nil {
		return err
	}
	if err := decoder.Decode(value); err != nil {
		return fmt.Errorf("%q is not %s", value, expected(field))
	}
	return nil
}

// expected says in people's words what a field takes.
func expected(field reflect.Value) string {
	switch field.Interface().(type) {
	case time.Duration:
		return "a duration such as 500us, 5ms or 2s"
	case bool:
		return "true or false"
	case int, int64:
		return "a whole number"
	case float64:
		return "a number"
	}
	return "a " + field.Type().Name()
}

// unknown names what there is, the first thing a reader would ask.
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
