package results

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
)

// Combine makes one of what several recorded of the same run. Each field says how:
//
//	merge:"sum"       the sum; nil if one does not know it
//	merge:"known"     the sum of what is known; of lists, all their entries
//	merge:"mean"      the mean, rounded in an integer; nil if one does not know it
//	merge:"weighted"  the mean by the runs' acquisitions; nil if one that had some does not know it
//	merge:"max"       the largest of what is known
//	merge:"min"       the smallest of what is known
//	merge:"any"       whether one is true
//	merge:"all"       whether all are true
//	merge:"pool"      Pool
//	merge:"first"     that of the first
//	merge:"key"       that of the first: it tells the entries of a list apart
//	merge:"-"         nothing: it is left empty
//
// A struct has no tag of its own: its fields combine, where it is known. So do the entries
// of lists of structs, those with the same key, or without a key those at the same place,
// as far as all lists go.
//
// The error names the field that does not say how it combines, or that Pool refuses.
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

// fieldValue is what one part has in a field.
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

// known are those that are not nil, without their pointers.
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

// meanCounts takes what is not in a map for 0.
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

// entries come in the order in which their keys are met.
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
