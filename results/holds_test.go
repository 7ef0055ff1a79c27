package results

import "testing"

func TestUnequalHoldsAreSaid(t *testing.T) {
	of := func(name, point string, holds ...float64) Summary {
		s := Summary{Strategy: Strategy{Name: name}, Point: point}
		for _, ns := range holds {
			s.Used = append(s.Used, Run{Speed: Speed{Hold: Distribution{MeanNS: &ns}}})
		}
		return s
	}
	for _, test := range []struct {
		name string
		all  []Summary
		want string
	}{
		{"none known", []Summary{{}}, ""},
		{"3 % apart", []Summary{of("a", "", 1e6), of("b", "", 1.029e6)}, ""},
		{"further apart, by the median", []Summary{of("a", "", 1e6, 1e6, 9e6), of("b", "", 1.5e6), of("c", "", 1.2e6)},
			"mean holds differ by over 3 % (b 1.50 ms, a 1.00 ms): compare the gap, not acq/s"},
		{"points of a sweep are not compared", []Summary{of("a", "hold=1ms", 1e6), of("a", "hold=2ms", 2e6)}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := HoldsNote(test.all); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
