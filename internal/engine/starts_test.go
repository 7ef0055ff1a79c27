package engine

import (
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/workloads"
)

// TestTheStartsOfASeedStayTheSame compares the starts of an open loop, in nanoseconds of
// the run's clock, with recorded ones: a report's seed must give the same load in later
// versions. The window opens one second after the clients begin.
func TestTheStartsOfASeedStayTheSame(t *testing.T) {
	const begin, open, seed = 12_345_678, 1_012_345_678, 7
	for _, test := range []struct {
		options string
		first   []int64
		sum     uint64 // of the first 10,000 starts and a draw of each
	}{
		{"rate=3000 arrivals=constant", []int64{12345678, 12679011, 13012344, 13345678, 13679011}, 0x8020887fdbe2ccf0},
		{"rate=3000 arrivals=poisson", []int64{12345678, 12910499, 13019616, 13519937, 13930764}, 0x25a961483a0cb68d},
		{"arrivals=constant stage=1s:1000/s stage=2s:4000/s", []int64{12345678, 13345678, 14345678, 15345678, 16345678}, 0xebae3cc3cd81c541},
		{"arrivals=poisson stage=1s:1000/s stage=2s:4000/s stage=1s:0/s", []int64{12345678, 14040142, 14367492, 15868455, 17100937}, 0xb44b51306358109f},
	} {
		var draft workloads.Draft
		for option := range strings.FieldsSeq(test.options) {
			name, value, _ := strings.Cut(option, "=")
			if err := draft.Give(name, value); err != nil {
				t.Fatal(err)
			}
		}
		points, err := draft.Points()
		if err != nil {
			t.Fatal(err)
		}
		a := newArrivals(points[0].Workload, begin, open, seed)
		var first []int64
		sum := fnv.New64a()
		for n := range 10_000 {
			at, random := a.arrive()
			if n < 5 {
				first = append(first, at)
			}
			for _, x := range []uint64{uint64(at), random.Uint64()} {
				for shift := 0; shift < 64; shift += 8 {
					sum.Write([]byte{byte(x >> shift)})
				}
			}
		}
		if !slices.Equal(first, test.first) || sum.Sum64() != test.sum {
			t.Errorf("%s: starts %v, sum %#x; want %v, %#x", test.options, first, sum.Sum64(), test.first, test.sum)
		}
	}
}
