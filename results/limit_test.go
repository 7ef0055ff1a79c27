package results

import "testing"

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		limit       string
		value       Figure
		kept, known bool
	}{
		{">= 3", Figure{Value: 3}, true, true},
		{"> 3", Figure{Value: 3}, false, true},
		{"<= 3", Figure{Value: 3}, true, true},
		{"< 3", Figure{Value: 3}, false, true},
		{"== 3", Figure{Value: 3}, true, true},
		{"=== 3", Figure{Value: 3}, true, true},
		{"== 3", Figure{Value: 3.1}, false, true},
		{"!= 3", Figure{Value: 3.1}, true, true},
		// Lower bounds: the value may be anything from there on.
		{">= 3", Figure{Value: 3, AtLeast: true}, true, true},
		{">= 3", Figure{Value: 2, AtLeast: true}, false, false},
		{"> 3", Figure{Value: 3, AtLeast: true}, false, false},
		{"> 3", Figure{Value: 4, AtLeast: true}, true, true},
		{"<= 3", Figure{Value: 2, AtLeast: true}, false, false},
		{"<= 3", Figure{Value: 3, AtLeast: true}, false, false},
		{"<= 3", Figure{Value: 4, AtLeast: true}, false, true},
		{"< 3", Figure{Value: 3, AtLeast: true}, false, true},
		{"== 3", Figure{Value: 3, AtLeast: true}, false, false},
		{"== 3", Figure{Value: 4, AtLeast: true}, false, true},
		{"!= 3", Figure{Value: 2, AtLeast: true}, false, false},
		{"!= 3", Figure{Value: 3, AtLeast: true}, false, false},
		{"!= 3", Figure{Value: 4, AtLeast: true}, true, true},
	} {
		l, err := ParseLimit(test.limit, Number)
		if err != nil {
			t.Fatal(err)
		}
		if kept, known := l.Keeps(test.value); kept != test.kept || known != test.known {
			t.Errorf("%+v %s: %v %v", test.value, test.limit, kept, known)
		}
	}
	for text, unit := range map[string]Unit{"3": "", "=> 3": "", ">= 3": Nanoseconds, "< 5ms": ""} {
		if l, err := ParseLimit(text, unit); err == nil {
			t.Errorf("%q in %q is %v", text, unit, l)
		}
	}
}
