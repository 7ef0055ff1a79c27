package results

import (
	"strconv"
	"testing"
)

func TestMedianOfBounds(t *testing.T) {
	exact := func(ns int64) *Bound { return &Bound{NS: ns} }
	least := func(ns int64) *Bound { return &Bound{NS: ns, AtLeast: true} }
	for i, test := range []struct {
		bounds []*Bound
		want   *Bound
	}{
		{nil, nil},
		{[]*Bound{nil, nil}, nil},
		{[]*Bound{exact(5)}, exact(5)},
		{[]*Bound{exact(9), nil, exact(1), exact(5)}, exact(5)},
		{[]*Bound{exact(2), exact(4)}, exact(3)},
		{[]*Bound{exact(1), exact(5), least(9)}, exact(5)}, // 9 or more: the middle stays
		{[]*Bound{least(1), exact(5), exact(9)}, least(5)}, // may be 7
		{[]*Bound{exact(2), least(4)}, least(3)},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			s := summary{}
			for round := range test.bounds {
				s.used = append(s.used, Run{Round: round})
			}
			got := s.bound(func(r Run) *Bound { return test.bounds[r.Round] })
			if (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestSummaryKeepsInvalidRunsOutOfMedians(t *testing.T) {
	r := sample()
	r.Runs = []Run{
		{Strategy: "pubsub", Speed: Speed{PerSecond: 10}, Safety: Safety{Overlaps: 1}},
		{Strategy: "pubsub", Speed: Speed{PerSecond: 1000}, Invalid: []string{"why"}, Safety: Safety{Overlaps: 2}},
		{Strategy: "pubsub", Speed: Speed{PerSecond: 20}},
		{Strategy: "spin", Speed: Speed{PerSecond: 7}, Failure: "it fell over"},
	}
	all := summarise(r)
	if len(all) != 2 || all[0].Name != "spin" || all[1].Name != "pubsub" {
		t.Fatalf("not in the order asked for: %+v", all)
	}
	rate := func(r Run) *float64 { return exactly(r.Speed.PerSecond) }
	if got := *all[1].median(rate); got != 15 {
		t.Errorf("median %v, want 15", got)
	}
	if overlaps := all[1].total(func(r Run) int64 { return r.Safety.Overlaps }); overlaps != 3 {
		t.Errorf("%d overlaps, want all 3", overlaps)
	}
	if s := all[0]; !s.suspect || *s.median(rate) != 7 {
		t.Errorf("the failed run is not shown as suspect: %+v", s)
	}
}
