package workloads

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/suggest"
)

// ParseFault reads the text form.
func ParseFault(text string) (Fault, error) {
	var f Fault
	err := f.UnmarshalText([]byte(text))
	return f, err
}

// Kind is what there is to know of all faults of this name; it is the zero
// FaultKind for one that does not exist.
func (f Fault) Kind() FaultKind {
	for _, kind := range FaultKinds() {
		if kind.Name == f.Name {
			return kind
		}
	}
	return FaultKind{}
}

// String returns the text form, without options at their defaults; at is always there.
func (f Fault) String() string {
	text := f.Name
	separator := ":"
	for _, o := range f.Kind().Options() {
		if value := o.get(f); value != o.Default || o.Name == "at" {
			text += separator + o.Name + "=" + value
			separator = ","
		}
	}
	return text
}

// MarshalText writes the text form.
func (f Fault) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads the text form, and names everything that is wrong with it.
func (f *Fault) UnmarshalText(text []byte) error {
	name, settings, _ := strings.Cut(string(text), ":")
	name = strings.TrimSpace(name)
	parsed := Fault{Name: name}
	kind := parsed.Kind()
	if kind.Name == "" {
		var names []string
		for _, k := range FaultKinds() {
			names = append(names, k.Name)
		}
		return fmt.Errorf("unknown fault %q%s (there are: %s)", name, suggest.Question("%q", name, names), strings.Join(names, ", "))
	}
	options := kind.Options()
	for _, o := range options {
		if err := o.set(&parsed, o.Default); err != nil {
			return fmt.Errorf("the default of %s: %w", o.Name, err)
		}
	}
	var wrong []error
	given := map[string]bool{}
	for setting := range strings.SplitSeq(settings, ",") {
		if settings == "" {
			break
		}
		key, value, _ := strings.Cut(setting, "=")
		key = strings.TrimSpace(key)
		at := slices.IndexFunc(options, func(o FaultOption) bool { return o.Name == key })
		switch {
		case at < 0:
			var names []string
			for _, o := range options {
				names = append(names, o.Name)
			}
			wrong = append(wrong, fmt.Errorf("%s: no option %q%s (there are: %s)", name, key, suggest.Question("%q", key, names), strings.Join(names, ", ")))
		case given[key]:
			wrong = append(wrong, fmt.Errorf("%s: %s is there twice", name, key))
		default:
			if err := options[at].set(&parsed, strings.TrimSpace(value)); err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %s: %w", name, key, err))
			}
		}
		given[key] = true
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	*f = parsed
	return nil
}
