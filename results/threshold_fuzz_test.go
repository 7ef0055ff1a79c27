package results

import (
	"math"
	"testing"
)

func FuzzParseThreshold(f *testing.F) {
	for _, seed := range []string{
		"wait:p(99)<50ms", "wait{strategy:pubsub}:p(99.9) >= 50ms", "redis_cpu_per_acq<80us", "violations==0", "violations === 0",
		"handoff{strategy:spin:backoff=fixed,base=5ms}:avg!=1s", "bytes_in_per_acq<2KB", "utilisation>5%", "acq_per_s>800/s", "x{", "{}", "wait:p()<",
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
		// What was understood is understood again, and can be judged.
		again, err := ParseThreshold(threshold.Expression)
		if err != nil || again.limit != threshold.limit || again.metric.Name != threshold.metric.Name || again.Strategy != threshold.Strategy {
			t.Fatalf("%q is understood as %+v, then as %+v: %v", text, threshold, again, err)
		}
		if len(Judge(report, []Threshold{threshold})) == 0 {
			t.Fatalf("%q judges nothing", text)
		}
	})
}
