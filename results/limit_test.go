package results

import (
	"math"
	"testing"
)

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
		// The figures of the following cases are lower bounds: the true value may be any larger one.
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

func FuzzParseThreshold(f *testing.F) {
	for _, seed := range []string{
		"wait:p(99)<50ms", "wait{strategy:pubsub}:p(99.9) >= 50ms", "redis_cpu_per_acq<80us", "violations==0",
		"violations === 0",
		"handoff{strategy:spin:backoff=fixed,base=5ms}:med!=1s", "bytes_in_per_acq<2KB", "utilisation>5%",
		"acq_per_s>800/s", "x{", "{}", "wait:p()<",
	} {
		f.Add(seed)
	}
	report := &Report{Strategies: []Strategy{{Name: "spin"}}, Runs: []Run{{Strategy: "spin"}}}
	f.Fuzz(func(t *testing.T, text string) {
		threshold, err := ParseThreshold(text)
		if err != nil {
			return
		}
		if math.IsNaN(threshold.limit.Value) || math.IsInf(threshold.limit.Value, 0) {
			t.Fatalf("%q has the limit %v", text, threshold.limit)
		}
		// The text of an accepted threshold must parse to the same threshold, and Judge must not panic.
		again, err := ParseThreshold(threshold.Expression)
		if err != nil || again.limit != threshold.limit || again.metric.Name != threshold.metric.Name ||
			again.Strategy != threshold.Strategy {
			t.Fatalf("%q is understood as %+v, then as %+v: %v", text, threshold, again, err)
		}
		if len(Judge(report, []Threshold{threshold})) == 0 {
			t.Fatalf("%q judges nothing", text)
		}
	})
}
