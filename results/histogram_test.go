package results

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
)

// The filled buckets are those that the library lists, whatever the layout is.
func TestFilledAreTheBarsOfTheLibrary(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, lowest := range []int64{1, 3, 1000} {
		for digits := 1; digits <= 5; digits++ {
			t.Run(fmt.Sprint(lowest, " ", digits), func(t *testing.T) {
				h := hdrhistogram.New(lowest, 3_600_000_000_000, digits)
				for range 2000 {
					if err := h.RecordValue(random.Int64N(1 << random.IntN(42))); err != nil {
						t.Fatal(err)
					}
				}
				for _, edge := range []int64{0, 1, 2047, 2048, 3_600_000_000_000} {
					if err := h.RecordValue(edge); err != nil {
						t.Fatal(err)
					}
				}
				var want, got [][2]int64
				for _, bar := range h.Distribution() {
					if bar.Count > 0 {
						want = append(want, [2]int64{bar.To, bar.Count})
					}
				}
				for to, n := range filled(h) {
					got = append(got, [2]int64{to, n})
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}
