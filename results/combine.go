package results

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
)

// Combine merges what several generators recorded of the same run. Each field's tag says how:
//
//	merge:"sum"       the sum; nil if unknown in one part
//	merge:"known"     the sum of the known values; for lists, all entries
//	merge:"mean"      the mean, rounded for an integer; nil if unknown in one part
//	merge:"weighted"  the mean weighted by the runs' acquisitions; nil if unknown in a part that has some
//	merge:"max"       the largest known value
//	merge:"min"       the smallest known value
//	merge:"any"       true if one is true
//	merge:"all"       true if all are true
//	merge:"pool"      Pool
//	merge:"first"     the first part's value
//	merge:"key"       the first part's value; it identifies an entry of a list
//	merge:"-"         left empty
//
// A struct has no tag: its fields combine, where it is known. The entries of a list of
// structs combine too: those with the same key, or without a key those at the same index, up
// to the length of the shortest list.
//
// The error names a field that has no valid tag, or that Pool refuses.
func Combine[T any](parts []T) (T, error) {
	var whole T
	var all fieldValues
	for _, part := range parts {
		run, _ := any(part).(Run)
		all = append(all, fieldValue{reflect.ValueOf(part), float64(run.Speed.Acquisitions)})
	}
	err := all.fields(reflect.ValueOf(&whole).Elem())
	return whole, err
}

// fieldValue is one part's value of a field.
type fieldValue struct {
	reflect.Value
	weight float64 // the run's acquisitions
}

type fieldValues []fieldValue

func (all fieldValues) fields(whole reflect.Value) error {
	for i := range whole.NumField() {
		field := whole.Type().Field(i)
		var in fieldValues
		for _, v := range all {
			in = append(in, fieldValue{v.Field(i), v.weight})
		}
		if err := in.combine(whole.Field(i), field.Tag.Get("merge")); err != nil {
			return fmt.Errorf("%s: %w", field.Name, err)
		}
	}
	return nil
}

func (all fieldValues) combine(whole reflect.Value, how string) error {
	if how == "weighted" {
		all = slices.DeleteFunc(all, func(v fieldValue) bool { return v.weight == 0 })
	}
	known := all.known()
	strict := how == "sum" || how == "mean" || how == "weighted"
	if how == "-" || len(known) == 0 || strict && len(known) < len(all) {
		return nil
	}
	if whole.Kind() == reflect.Pointer {
		whole.Set(reflect.New(whole.Type().Elem()))
		whole = whole.Elem()
	}
	switch how {
	case "sum", "known":
		known.sum(whole)
	case "mean", "weighted":
		known.mean(whole, how == "weighted")
	case "max":
		whole.Set(slices.MaxFunc(known, fieldValue.compare).Value)
	case "min":
		whole.Set(slices.MinFunc(known, fieldValue.compare).Value)
	case "any":
		whole.SetBool(slices.ContainsFunc(known, fieldValue.Bool))
	case "all":
		whole.SetBool(!slices.ContainsFunc(known, func(v fieldValue) bool { return !v.Bool() }))
	case "pool":
		pooled, err := Pool(valuesAs[Distribution](known))
		whole.Set(reflect.ValueOf(pooled))
		return err
	case "first", "key":
		whole.Set(known[0].Value)
	case "":
		if whole.Kind() == reflect.Struct {
			return known.fields(whole)
		}
		return known.entries(whole)
	default:
		return fmt.Errorf("no such way: merge:%q", how)
	}
	return nil
}

// known returns the values that are not nil, without their pointers.
func (all fieldValues) known() (known fieldValues) {
	for _, v := range all {
		if kind := v.Kind(); kind != reflect.Pointer && kind != reflect.Map || !v.IsNil() {
			known = append(known, fieldValue{reflect.Indirect(v.Value), v.weight})
		}
	}
	return known
}

func valuesAs[T any](all fieldValues) (as []T) {
	for _, v := range all {
		as = append(as, v.Interface().(T))
	}
	return as
}

func (all fieldValues) sum(whole reflect.Value) {
	for _, v := range all {
		switch {
		case whole.CanInt():
			whole.SetInt(whole.Int() + v.Int())
		case whole.CanFloat():
			whole.SetFloat(whole.Float() + v.Float())
		default:
			whole.Set(reflect.AppendSlice(whole, v.Value))
		}
	}
}

func (all fieldValues) mean(whole reflect.Value, weighted bool) {
	if whole.Kind() == reflect.Map {
		whole.Set(reflect.ValueOf(meanCounts(valuesAs[map[string]int64](all))))
		return
	}
	var sum, weights float64
	for _, v := range all {
		weight := 1.0
		if weighted {
			weight = v.weight
		}
		sum += weight * v.number()
		weights += weight
	}
	mean := sum / weights
	if whole.CanInt() {
		mean = math.Round(mean)
	}
	whole.Set(reflect.ValueOf(mean).Convert(whole.Type()))
}

// meanCounts counts a name that is missing in a map as 0.
func meanCounts(all []map[string]int64) map[string]int64 {
	means := map[string]int64{}
	for _, counts := range all {
		for name := range counts {
			var sum int64
			for _, counts := range all {
				sum += counts[name]
			}
			means[name] = int64(math.Round(float64(sum) / float64(len(all))))
		}
	}
	return means
}

func (v fieldValue) number() float64 { return v.Convert(reflect.TypeFor[float64]()).Float() }

func (v fieldValue) compare(other fieldValue) int {
	if bound, ok := v.Interface().(Bound); ok {
		return bound.compare(other.Interface().(Bound))
	}
	return cmp.Compare(v.number(), other.number())
}

// entries combines lists of structs. The keys keep the order of their first occurrence.
func (all fieldValues) entries(whole reflect.Value) error {
	if whole.Kind() != reflect.Slice || whole.Type().Elem().Kind() != reflect.Struct {
		return errors.New("it has no tag merge")
	}
	entry := whole.Type().Elem()
	key := slices.IndexFunc(reflect.VisibleFields(entry), func(f reflect.StructField) bool { return f.Tag.Get("merge") == "key" })
	groups, order := map[any]fieldValues{}, []any{}
	for _, list := range all {
		for i := range list.Len() {
			var at any = i
			if key >= 0 {
				at = list.Index(i).Field(key).Interface()
			}
			if groups[at] == nil {
				order = append(order, at)
			}
			groups[at] = append(groups[at], fieldValue{list.Index(i), list.weight})
		}
	}
	for _, at := range order {
		if key < 0 && len(groups[at]) < len(all) {
			break
		}
		together := reflect.New(entry).Elem()
		if err := groups[at].fields(together); err != nil {
			return err
		}
		whole.Set(reflect.Append(whole, together))
	}
	return nil
}
