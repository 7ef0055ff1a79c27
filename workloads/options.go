package workloads

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Field is an option of a workload, derived from the tags of a field of Spec. An option is both a flag of the command
// and a line of a workload file, with the same name and syntax. The options of a fault are derived from Fault in the
// same way.
//
// The tags are: kind, the name of the values in help; short, the flag's letter; sep, the separator between values; min,
// the smallest value; words, the allowed values if there are only a few.
type Field struct {
	Name    string
	Short   string // the flag's letter, if it has one
	Kind    string // word for its values in help, such as duration
	Help    string
	Default string   // as help shows it; "" if the text Help contains it
	Words   []string // the only values, if not empty
	Sweep   bool     // several values make a sweep: each is measured separately
	List    bool     // several values apply together, as in a list of faults
	Switch  bool     // a flag without a value means "true"

	separator string // separator of several values; "" if the option has only one value
	least     string // smallest value; "" means no limit
	index     int    // index of the field in its struct
}

// Fields returns all options in the order of the help.
func Fields() []Field { return slices.Clone(described()) }

// The tags are read only once, because some commands parse options many times.
var (
	ofSpec    = sync.OnceValue(func() []Field { return fieldsOf(reflect.TypeFor[Spec]()) })
	described = sync.OnceValue(describe)
)

func describe() []Field {
	fields, usual := slices.Clone(ofSpec()), Default().Given()
	for i, f := range fields {
		fields[i].Help = helps[f.Name]
		text := f.Join(usual[f.Name])
		if f.Name != "instances" && !slices.Contains([]string{"0", "0/s", "false"}, text) {
			fields[i].Default = text
		}
	}
	return fields
}

// fieldsOf returns the options that the tags of a struct define. The name of an option is the JSON name of its field in
// the singular, with hyphens.
func fieldsOf(t reflect.Type) []Field {
	var fields []Field
	for i := range t.NumField() {
		tag, of := t.Field(i).Tag, t.Field(i).Type
		name, _, _ := strings.Cut(tag.Get("json"), ",")
		f := Field{
			Name: strings.ReplaceAll(name, "_", "-"), Short: tag.Get("short"), Kind: tag.Get("kind"),
			Help:  tag.Get("help"),
			Words: strings.Fields(tag.Get("words")), List: of.Kind() == reflect.Slice,
			Switch:    of.Kind() == reflect.Bool,
			separator: tag.Get("sep"), least: tag.Get("min"), index: i,
		}
		f.Sweep = f.separator != "" && !f.List
		if f.List {
			f.Name = strings.TrimSuffix(f.Name, "s")
		}
		if f.Name != "" {
			fields = append(fields, f)
		}
	}
	return fields
}

// split splits the text of an option into its values. It does not split a distribution at the comma between its
// parameters.
func (f Field) split(text string) []string {
	if f.separator == "" {
		return []string{text}
	}
	parts := strings.Split(text, f.separator)
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	if f.Kind == "dist" {
		return pairs(parts)
	}
	return parts
}

// Join joins values with the separator that flags accept.
func (f Field) Join(values []string) string { return strings.Join(values, f.separator) }

// check returns an error if the field's value is not allowed, whatever the other fields are.
func (f Field) check(of reflect.Value) error {
	v := of.Field(f.index)
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	text := fmt.Sprint(v.Interface())
	if len(f.Words) > 0 && !slices.Contains(f.Words, text) {
		last := len(f.Words) - 1
		return fmt.Errorf("%s must be %s or %s, not %q", f.Name, strings.Join(f.Words[:last], ", "), f.Words[last],
			text)
	}
	if f.least == "" {
		return nil
	}
	least, err := parse(f.least, v.Type())
	if err == nil && v.Int() < least.Int() {
		err = fmt.Errorf("%s must be at least %s, not %s", f.Name, f.least, text)
	}
	return err
}

func parse(text string, of reflect.Type) (reflect.Value, error) {
	if of.Kind() == reflect.Pointer {
		v, err := parse(text, of.Elem())
		if err != nil {
			return v, err
		}
		return v.Addr(), nil
	}
	v := reflect.New(of).Elem()
	if reader, ok := reflect.TypeAssert[encoding.TextUnmarshaler](v.Addr()); ok {
		return v, reader.UnmarshalText([]byte(text))
	}
	switch of.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		on, err := strconv.ParseBool(text)
		if err != nil {
			return v, fmt.Errorf("%q is neither true nor false", text)
		}
		v.SetBool(on)
	default:
		n, err := strconv.ParseInt(text, 10, of.Bits())
		if errors.Is(err, strconv.ErrRange) {
			return v, fmt.Errorf("%s is out of range", text)
		}
		if err != nil {
			return v, fmt.Errorf("%q is not a whole number", text)
		}
		v.SetInt(n)
	}
	return v, nil
}

// Given returns, for each option, the texts from which a Draft makes the same workload. An option without a value has
// no texts.
func (s Spec) Given() map[string][]string {
	all := map[string][]string{}
	for _, f := range ofSpec() {
		v := reflect.ValueOf(s).Field(f.index)
		switch {
		case f.List:
			for i := range v.Len() {
				all[f.Name] = append(all[f.Name], fmt.Sprint(v.Index(i).Interface()))
			}
		case v.Kind() != reflect.Pointer:
			all[f.Name] = []string{fmt.Sprint(v.Interface())}
		case !v.IsNil():
			all[f.Name] = []string{fmt.Sprint(v.Elem().Interface())}
		}
	}
	return all
}

// Arguments returns the flags that produce the workload of a single point or the workloads of a sweep. It omits options
// that have their defaults.
func Arguments(points []Point) []string {
	var arguments []string
	usual := Default().Given()
	for _, field := range Fields() {
		var values []string
		for _, p := range points {
			for _, value := range p.Workload.Given()[field.Name] {
				if !slices.Contains(values, value) {
					values = append(values, value)
				}
			}
		}
		switch {
		case slices.Equal(values, usual[field.Name]), follows(field.Name, points):
		case field.List:
			for _, value := range values {
				arguments = append(arguments, "--"+field.Name, value)
			}
		case field.Switch:
			arguments = append(arguments, "--"+field.Name)
		default:
			arguments = append(arguments, "--"+field.Name, field.Join(values))
		}
	}
	return arguments
}

// follows reports whether the values of the option at these points are those that a Draft derives from other options.
func follows(name string, points []Point) bool {
	return !slices.ContainsFunc(points, func(p Point) bool {
		w := p.Workload
		switch name {
		case "instances":
			return w.Instances != min(DefaultInstances, w.Clients)
		case "duration":
			return len(w.Stages) == 0
		case "rate":
			return len(w.Stages) == 0 || w.Rate != Rate(w.Stages[0].Target)
		}
		return true
	})
}
