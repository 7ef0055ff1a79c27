package results

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPoolIsOneRecording compares two halves, put together, with the whole.
func TestPoolIsOneRecording(t *testing.T) {
	t.Parallel()
	whole := NewObservations()
	ended, censored := whole.Ended, whole.Censored
	var halves [2]Distribution
	for i := range halves {
		half := NewObservations()
		e, c := half.Ended, half.Censored
		var sum float64
		longest := &Bound{}
		for n := range int64(300) {
			ns := (n + 1) * 1_000_003 * int64(i+1)
			_, _ = e.RecordValue(ns), ended.RecordValue(ns)
			sum += float64(ns)
			*longest = Bound{NS: ns}
		}
		if i == 1 {
			_, _ = half.Entered.RecordValue(4e8), whole.Entered.RecordValue(4e8)
			_, _ = c.RecordValue(9e8), censored.RecordValue(9e8)
			*longest = Bound{NS: 9e8, AtLeast: true}
		}
		d := Describe(half, longest)
		d.MeanNS = new(sum / 300)
		halves[i] = d
	}
	want := Describe(whole, &Bound{NS: 9e8, AtLeast: true})
	want.MeanNS = new((*halves[0].MeanNS + *halves[1].MeanNS) / 2)
	got, err := Pool(halves[:])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-one recording +two put together:\n%s", diff)
	}
	survival, err := PoolSurvival(halves[:])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.P90, survival.Quantile(0.9)); diff != "" {
		t.Errorf("p90: -want +got:\n%s", diff)
	}
	if _, err := Pool([]Distribution{halves[0], {Count: 3}}); err == nil {
		t.Error("durations without a histogram are lost in silence")
	}
}
