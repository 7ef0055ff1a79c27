package results

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
)

// Counted must return exactly the non-empty bins that the HdrHistogram library lists, with 1 to 5 significant digits.
func TestHistogramBinsMatchLibrary(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for digits := 1; digits <= 5; digits++ {
		h := hdrhistogram.New(1, longestRecorded, digits)
		values := []int64{0, 1, 2047, 2048, longestRecorded}
		for range 2000 {
			values = append(values, random.Int64N(1<<random.IntN(42)))
		}
		for _, v := range values {
			if err := h.RecordValue(v); err != nil {
				t.Fatal(err)
			}
		}
		var want Histogram
		for _, bar := range h.Distribution() {
			if bar.Count > 0 {
				want = append(want, Bin{bar.To, bar.Count})
			}
		}
		got := Counted(h)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d digits: %s", digits, diff)
		}
		if digits != recordedDigits {
			continue
		}
		if got.TotalCount() != h.TotalCount() || math.Abs(got.Mean()/h.Mean()-1) > 1e-9 ||
			*got.Median() != h.ValueAtQuantile(50) {
			t.Errorf("%d values of mean %v, median %v, not those of the library",
				got.TotalCount(), got.Mean(), *got.Median())
		}
		for i, bar := range slices.DeleteFunc(h.Distribution(), func(b hdrhistogram.Bar) bool { return b.Count == 0 }) {
			if got[i].from() != bar.From {
				t.Errorf("bin %v begins at %d, not %d", got[i], got[i].from(), bar.From)
			}
		}
	}
}

// TestWideHistogramsAreRefused reads reports with histograms of lockbench's layout and of other layouts. The others
// must be rejected before memory is allocated for them, because a short text can expand to 50 MB. The test is not
// parallel, because it measures memory.
func TestWideHistogramsAreRefused(t *testing.T) {
	for name, h := range map[string]*hdrhistogram.Histogram{
		"lockbench's own":   NewHistogram(),
		"a wide one":        hdrhistogram.New(1, math.MaxInt64, 5),
		"one digit too far": hdrhistogram.New(1, longestRecorded, recordedDigits+1),
	} {
		if err := h.RecordValue(1); err != nil {
			t.Fatal(err)
		}
		encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		document := fmt.Sprintf(`{"schema": %q, "runs": [{"fairness": {"turns_hdr": %q}}]}`, Schema, encoded)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = ReadJSON(strings.NewReader(document))
		runtime.ReadMemStats(&after)
		own := name == "lockbench's own"
		if own != (err == nil) || !own && !strings.Contains(err.Error(), "its range is 1 to ") {
			t.Errorf("%s: %v", name, err)
		}
		const most = 8 << 20 // a wide histogram takes 50 MB
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("%s: %d bytes of JSON took %d MB", name, len(document), took>>20)
		}
	}
}
