package results

import (
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
	case *bool:
		*s = how == byOr && (*s || more.Bool()) || how == byAnd && *s && more.Bool()
	case *[]string:
		*s = slices.Concat(*s, more.Interface().([]string))
	case *map[string]int64:
		*s = addCounts(*s, more.Interface().(map[string]int64))
	default:
		sum.Set(added(how, sum, more))
	}
}

// added adds numbers, structs of them, and pointers to either, of which nil is not known.
func added(how string, a, b reflect.Value) reflect.Value {
	sum := reflect.New(a.Type()).Elem()
	switch {
	case a.Kind() != reflect.Pointer:
		sum.Set(a)
	case how == bySum && (a.IsNil() || b.IsNil()), b.IsNil() && a.IsNil():
		return sum
	case b.IsNil():
		return a
	case a.IsNil():
		return b
	}
	switch {
	case a.Kind() == reflect.Pointer:
		sum.Set(reflect.New(a.Type().Elem()))
		sum.Elem().Set(added(how, a.Elem(), b.Elem()))
	case a.Kind() == reflect.Struct:
		addStruct(sum, b)
	case a.CanInt():
		sum.SetInt(addNumbers(how, a.Int(), b.Int()))
	default:
		sum.SetFloat(addNumbers(how, a.Float(), b.Float()))
	}
	return sum
}

func addNumbers[N int64 | float64](how string, a, b N) N {
	switch how {
	case byMaximum:
		return max(a, b)
	case byMinimum:
		return min(a, b)
	}
	return a + b
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
