package results

import (
	"os"
	"reflect"
	"testing"
)

// The test changes each field of Redis and Environment in turn. The text of the conditions must change each time, so
// the test fails if the conditions omit a new field.
func TestEveryConditionIsReported(t *testing.T) {
	elsewhere := map[string]string{
		"Why": "the page has a line for it", "Mode": "next to the version",
	}
	said := func(r *Report) (text string) {
		for _, line := range r.Conditions() {
			text += line[0] + " " + line[1] + "\n"
		}
		return text
	}
	file, err := os.Open("testdata/normal.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := ReadJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	before := said(r)
	for _, of := range []any{&r.Redis, &r.Environment} {
		value := reflect.ValueOf(of).Elem()
		for i := range value.NumField() {
			name, field := value.Type().Field(i).Name, value.Field(i)
			was := reflect.New(field.Type()).Elem()
			was.Set(field)
			field.SetZero()
			if fill(field); field.Kind() == reflect.Slice {
				field.Set(reflect.AppendSlice(field, field)) // a single node is the address
			}
			if elsewhere[name] == "" && said(r) == before {
				t.Errorf("%T: another %s is not said", of, name)
			}
			field.Set(was)
		}
	}
}
