package engine

import (
	"math"
	"testing"

	"github.com/lockbench/lockbench/results"
)

func TestWhatFollowsAStrike(t *testing.T) {
	type got struct{ key, at int64 }
	for _, test := range []struct {
		name     string
		key      int
		over     int64 // 0: at once
		until    int64
		grants   []got
		recovery int64 // -1: never
		stall    results.Bound
	}{
		{"somebody gets it", every, 0, 0, []got{{0, 150}, {0, 160}}, 50, results.Bound{NS: 340, AtLeast: true}},
		{"the gap in the middle", every, 0, 0, []got{{0, 110}, {0, 480}, {0, 490}}, 10, results.Bound{NS: 370}},
		{"nobody", every, 0, 0, nil, -1, results.Bound{NS: 400, AtLeast: true}},
		{"before it", every, 0, 0, []got{{0, 90}}, -1, results.Bound{NS: 400, AtLeast: true}},
		{"another key", 1, 0, 0, []got{{0, 150}, {1, 300}}, 200, results.Bound{NS: 200}},
		{"in flight when everything halts", every, 250, 0, []got{{0, 101}, {0, 260}, {0, 450}}, 160, results.Bound{NS: 190}},
		{"after the next strike", every, 0, 200, []got{{0, 300}}, 200, results.Bound{NS: 100, AtLeast: true}},
		{"late to tell", every, 0, 0, []got{{0, 300}, {0, 290}, {0, 480}}, 200, results.Bound{NS: 200}},
	} {
		s := &injection{at: 100, key: test.key, over: max(test.over, 100), ended: true, lastSeen: 100, until: math.MaxInt64}
		if test.until > 0 {
			s.until = test.until
		}
		for _, g := range test.grants {
			s.seen(int(g.key), g.at)
		}
		s.stalled(min(s.until, 500), true)
		if took := s.RecoveryNS; (took == nil) != (test.recovery < 0) || took != nil && *took != test.recovery {
			t.Errorf("%s: recovery %v, want %d", test.name, took, test.recovery)
		}
		if s.Stall == nil || *s.Stall != test.stall {
			t.Errorf("%s: stall %+v, want %+v", test.name, s.Stall, test.stall)
		}
	}
}
