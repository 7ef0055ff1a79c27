package results

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// The ways in which a field is added to that of another record, in its tag "add". A field without this tag
// stays as it is; the fields of a struct have tags of their own.
const (
	bySum     = "sum"   // not known unless both are
	byKnown   = "known" // the sum of what is known
	byMaximum = "max"   // of what is known
	byMinimum = "min"
	byOr      = "or"
	byAnd     = "and"
	byNone    = "none" // it becomes unknown, because only a single process can observe it
)

// addFields adds a struct to the one at sum, which is of the same type.
func addFields(sum, more any) { addStruct(reflect.ValueOf(sum).Elem(), reflect.ValueOf(more)) }

func addStruct(sum, more reflect.Value) {
	for i := range sum.NumField() {
		field, other := sum.Field(i), more.Field(i)
		switch how := sum.Type().Field(i).Tag.Get("add"); {
		case how == byNone:
			field.SetZero()
		case how != "":
			addField(how, field, other)
		case field.Kind() == reflect.Struct:
			addStruct(field, other)
		}
	}
}

// addField changes nothing that another record points to.
func addField(how string, sum, more reflect.Value) {
	switch s := sum.Addr().Interface().(type) {
	case *Distribution:
		s.add(more.Interface().(Distribution))
	case *Histogram:
		*s = s.Plus(more.Interface().(Histogram))
	case **Bound:
		*s = Longest(*s, more.Interface().(*Bound))
	case *int:
		*s = *add(how, s, new(int(more.Int())))
	case *int64:
		*s = *add(how, s, new(more.Int()))
	case *float64:
		*s = *add(how, s, new(more.Float()))
	case **int:
		*s = add(how, *s, more.Interface().(*int))
	case **int64:
		*s = add(how, *s, more.Interface().(*int64))
	case **float64:
		*s = add(how, *s, more.Interface().(*float64))
	case *bool:
		*s = how == byOr && (*s || more.Bool()) || how == byAnd && *s && more.Bool()
	case *[]string:
		*s = slices.Concat(*s, more.Interface().([]string))
	case *map[string]int64:
		*s = addCounts(*s, more.Interface().(map[string]int64))
	case **Rest:
		*s = addKnown(*s, more.Interface().(*Rest))
	case **ServerPeak:
		*s = addKnown(*s, more.Interface().(*ServerPeak))
	default:
		panic(fmt.Sprintf("results: %T cannot be added", s))
	}
}

// addKnown adds two structs; nil is one without values.
func addKnown[T any](a, b *T) *T {
	var sum T
	for _, part := range []*T{a, b} {
		if part != nil {
			addFields(&sum, *part)
		}
	}
	if a == nil && b == nil {
		return nil
	}
	return &sum
}

// addCounts adds counts by name; nil if one of the two is not known.
func addCounts(a, b map[string]int64) map[string]int64 {
	if a == nil || b == nil {
		return nil
	}
	sum := maps.Clone(a)
	for name, n := range b {
		sum[name] += n
	}
	return sum
}

// number is a count or another figure.
type number interface{ int | int64 | float64 }

// add adds two figures, nil ones being unknown.
func add[N number](how string, a, b *N) *N {
	if a == nil || b == nil {
		if how == bySum {
			return nil
		}
		return cmp.Or(a, b)
	}
	switch how {
	case byMaximum:
		return new(max(*a, *b))
	case byMinimum:
		return new(min(*a, *b))
	}
	return new(*a + *b)
}
