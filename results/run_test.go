package results

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHalvedSlicesKeepTheirSums(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	wait := func(ns int64) *Bound { return &Bound{NS: ns} }
	cpu := 0.5
	got := Halve([]Slice{
		{
			At: 0, Seconds: 1, Acquisitions: 3, Waiting: 9, WaitP50: wait(5), WaitMax: wait(8), Commands: n(10),
			RedisCPU: &cpu,
		},
		{At: 1, Seconds: 1, Acquisitions: 4, Waiting: 7, WaitP50: wait(4), WaitMax: wait(9), Commands: n(20)},
		{At: 2, Seconds: 0.5, Acquisitions: 1},
	})
	want := []Slice{
		{At: 0, Seconds: 2, Acquisitions: 7, Waiting: 7, WaitP50: wait(5), WaitMax: wait(9), Commands: n(30)},
		{At: 2, Seconds: 0.5, Acquisitions: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
