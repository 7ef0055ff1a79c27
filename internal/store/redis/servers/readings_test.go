package servers

import (
	"reflect"
	"testing"

	"github.com/lockbench/lockbench/results"
)

// Plus must add, and Since must subtract, every counter that is not excepted below. A counter that they forget would
// always be missing from reports, and no other test would notice.
func TestNoCounterIsForgotten(t *testing.T) {
	notOfNodes := map[string]string{ // figures of the whole or of the generator, which Plus does not add
		"At": "", "IOThreads": "", "RoundTrips": "", "ClientBytesOut": "", "ClientBytesIn": "", "Observer": "",
		"Nodes": "", "Role": "", "History": "",
	}
	notDifferences := map[string]string{ // current values, or figures that only intermediate steps use
		"At": "", "IOThreads": "", "Observer": "", "Nodes": "", "Clients": "", "Memory": "", "FromNodes": "",
		"Role": "", "History": "",
	}
	counted := func(n int64) (r results.Reading) {
		v := reflect.ValueOf(&r).Elem()
		for _, field := range v.Fields() {
			switch field := field; field.Interface().(type) {
			case int64:
				field.SetInt(n)
			case *int64:
				field.Set(reflect.ValueOf(&n))
			case *float64:
				x := float64(n)
				field.Set(reflect.ValueOf(&x))
			case map[string]int64:
				field.Set(reflect.ValueOf(map[string]int64{"get": n}))
			}
		}
		return r
	}
	sum := reflect.ValueOf(counted(3).Plus(counted(4)))
	delta := reflect.ValueOf(*counted(9).Since(counted(2), 1))
	for i := range sum.NumField() {
		name := sum.Type().Field(i).Name
		if _, left := notOfNodes[name]; !left && figure(sum.Field(i)) != 7 {
			t.Errorf("%s of two nodes is %v, want 3 + 4", name, figure(sum.Field(i)))
		}
		if _, left := notDifferences[name]; left {
			continue
		}
		if f := delta.FieldByName(name); !f.IsValid() || figure(f) != 7 {
			t.Errorf("%s in between is not 9 − 2", name)
		}
	}
}

func figure(v reflect.Value) float64 {
	switch n := v.Interface().(type) {
	case int64:
		return float64(n)
	case *int64:
		if n != nil {
			return float64(*n)
		}
	case *float64:
		if n != nil {
			return *n
		}
	case map[string]int64:
		return float64(n["get"])
	}
	return 0
}
