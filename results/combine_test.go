package results

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEveryFieldCombines keeps a new field of a run from being dropped in silence.
func TestEveryFieldCombines(t *testing.T) {
	t.Parallel()
	var run Run
	fill(t, reflect.ValueOf(&run).Elem())
	whole, err := Combine([]Run{run, run})
	if err != nil {
		t.Fatal(err)
	}
	if names := dropped(reflect.ValueOf(whole), "Run"); len(names) > 0 {
		t.Errorf("nothing comes of %s", strings.Join(names, ", "))
	}
}

// fill sets everything that combines.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Struct:
		if d, ok := v.Addr().Interface().(*Distribution); ok {
			d.Max = &Bound{NS: 1}
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("merge") != "-" {
				fill(t, v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]int64{"get": 1}))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("text")
	default:
		v.Set(reflect.ValueOf(1).Convert(v.Type()))
	}
}

// dropped names the fields that combine and are empty.
func dropped(v reflect.Value, name string) []string {
	switch {
	case v.IsZero():
		return []string{name}
	case v.Kind() == reflect.Pointer:
		return dropped(v.Elem(), name)
	case v.Kind() == reflect.Slice:
		return dropped(v.Index(0), name)
	}
	var names []string
	for i := range v.NumField() {
		field := v.Type().Field(i)
		switch how := field.Tag.Get("merge"); {
		case how == "":
			names = append(names, dropped(v.Field(i), name+"."+field.Name)...)
		case how != "-" && v.Field(i).IsZero():
			names = append(names, name+"."+field.Name)
		}
	}
	return names
}

func TestCombine(t *testing.T) {
	t.Parallel()
	type inner struct {
		Sum int `merge:"sum"`
	}
	type slot struct {
		Sum float64 `merge:"sum"`
	}
	type figures struct {
		Sum   *int64           `merge:"sum"`
		Known *int64           `merge:"known"`
		Names []string         `merge:"known"`
		Mean  *float64         `merge:"mean"`
		Count *int64           `merge:"mean"`
		Calls map[string]int64 `merge:"mean"`
		Max   *int64           `merge:"max"`
		Min   *int64           `merge:"min"`
		Bound *Bound           `merge:"max"`
		Any   bool             `merge:"any"`
		All   bool             `merge:"all"`
		First string           `merge:"first"`
		Left  string           `merge:"-"`
		Inner *inner
		Keyed []ErrorCount
		Slots []slot
	}
	one := figures{
		Sum: new(int64(1)), Known: new(int64(1)), Names: []string{"b"}, Mean: new(1.0), Count: new(int64(1)), Calls: map[string]int64{"get": 3, "set": 4},
		Max: new(int64(1)), Min: new(int64(1)), Bound: &Bound{NS: 1}, Any: true, First: "one", Left: "one", Inner: &inner{1},
		Keyed: []ErrorCount{{"x", 1}, {"y", 2}}, Slots: []slot{{0.5}, {1}},
	}
	two := figures{
		Sum: new(int64(2)), Known: new(int64(2)), Names: []string{"a"}, Mean: new(2.0), Count: new(int64(2)), Calls: map[string]int64{"get": 5},
		Max: new(int64(2)), Min: new(int64(2)), Bound: &Bound{NS: 1, AtLeast: true}, All: true, First: "two", Left: "two", Inner: &inner{2},
		Keyed: []ErrorCount{{"z", 3}, {"y", 5}}, Slots: []slot{{2}},
	}
	for name, c := range map[string]struct {
		parts []figures
		want  figures
	}{
		"both know": {[]figures{one, two}, figures{
			Sum: new(int64(3)), Known: new(int64(3)), Names: []string{"b", "a"}, Mean: new(1.5), Count: new(int64(2)), Calls: map[string]int64{"get": 4, "set": 2},
			Max: new(int64(2)), Min: new(int64(1)), Bound: &Bound{NS: 1, AtLeast: true}, Any: true, First: "one", Inner: &inner{3},
			Keyed: []ErrorCount{{"x", 1}, {"y", 7}, {"z", 3}}, Slots: []slot{{2.5}},
		}},
		"one does not": {[]figures{two, {}}, figures{
			Known: two.Known, Names: two.Names, Max: two.Max, Min: two.Min, Bound: two.Bound, First: "two", Inner: two.Inner, Keyed: two.Keyed,
		}},
		"nobody does": {[]figures{{}, {}}, figures{}},
	} {
		got, err := Combine(c.parts)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestCombineWeighs: who had nothing has no say, and who had something has to know.
func TestCombineWeighs(t *testing.T) {
	t.Parallel()
	run := func(acquisitions int64, attempts *float64) Run {
		return Run{
			Speed: Speed{Acquisitions: acquisitions}, Effort: Effort{Attempts: attempts},
			Server: Server{Window: &ServerDelta{Seconds: float64(acquisitions)}},
		}
	}
	for name, c := range map[string]struct {
		runs []Run
		want *float64
	}{
		"both know":             {[]Run{run(100, new(1.0)), run(300, new(2.0))}, new(1.75)},
		"one had nothing":       {[]Run{run(100, new(1.0)), run(0, nil)}, new(1.0)},
		"one does not know":     {[]Run{run(100, new(1.0)), run(1, nil)}, nil},
		"neither had something": {[]Run{run(0, new(1.0)), run(0, nil)}, nil},
	} {
		whole, err := Combine(c.runs)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, whole.Effort.Attempts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if mean := float64(whole.Speed.Acquisitions) / 2; whole.Server.Window.Seconds != mean {
			t.Errorf("%s: a mean that is not weighed is %v, not %v", name, whole.Server.Window.Seconds, mean)
		}
	}
}

// TestCombineNamesTheField that does not say how, or cannot.
func TestCombineNamesTheField(t *testing.T) {
	t.Parallel()
	type silent struct{ Inner struct{ Labels []string } }
	type wrong struct {
		Sum int `merge:"total"`
	}
	for want, err := range map[string]error{
		"Inner: Labels: it has no tag merge":                                  second(Combine([]silent{{}, {}})),
		`Sum: no such way: merge:"total"`:                                     second(Combine([]wrong{{}, {}})),
		"Speed: Hold: distribution 2: it has no histogram of its 3 durations": second(Combine([]Run{{}, {Speed: Speed{Hold: Distribution{Count: 3}}}})),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, not %s", err, want)
		}
	}
}

func second[T any](_ T, err error) error { return err }
