package results_test

import (
	"reflect"
	"testing"

	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
)

// Whoever adds a fact of the server or of the machine and does not say it is found here.
func TestEveryConditionIsSaid(t *testing.T) {
	elsewhere := map[string]string{
		"Why": "the page has a line for it", "Mode": "beside the version",
	}
	said := func(r *results.Report) (text string) {
		for _, line := range r.Conditions() {
			text += line[0] + " " + line[1] + "\n"
		}
		return text
	}
	r := golden.Report(t, "testdata/normal.json")
	r.Redis.AllowedCPUs, r.Environment.AllowedCPUs = []int{0, 1}, []int{0, 1}
	before := said(r)
	for _, of := range []any{&r.Redis, &r.Environment} {
		value := reflect.ValueOf(of).Elem()
		for i := range value.NumField() {
			name, field := value.Type().Field(i).Name, value.Field(i)
			was := reflect.New(field.Type()).Elem()
			was.Set(field)
			field.Set(unusual(t, name, field.Type()))
			if elsewhere[name] == "" && said(r) == before {
				t.Errorf("%T: another %s is not said", of, name)
			}
			field.Set(was)
		}
	}
}

// unusual is a value that no sample has.
func unusual(t *testing.T, name string, of reflect.Type) reflect.Value {
	switch v := reflect.New(of).Elem(); of.Kind() {
	case reflect.String:
		v.SetString("another")
		return v
	case reflect.Int, reflect.Int64:
		v.SetInt(7777)
		return v
	case reflect.Float64:
		v.SetFloat(7777)
		return v
	case reflect.Bool:
		v.SetBool(true)
		return v
	case reflect.Slice:
		one := unusual(t, name, of.Elem())
		return reflect.Append(v, one, one)
	case reflect.Pointer:
		v.Set(reflect.New(of.Elem()))
		v.Elem().Set(unusual(t, name, of.Elem()))
		return v
	default:
		t.Fatalf("%s is a %v", name, of)
		return v
	}
}
