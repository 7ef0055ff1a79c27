package results

import (
	"bytes"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// TestWideHistogramsAreRefused: a short text can stand for a histogram of 50 MB. One of another layout than
// lockbench's is refused before it takes its memory. Not parallel: it measures the memory.
func TestWideHistogramsAreRefused(t *testing.T) {
	wide := hdrhistogram.New(1, math.MaxInt64, 5)
	if err := wide.RecordValue(1); err != nil {
		t.Fatal(err)
	}
	other := hdrhistogram.New(1, longestRecorded, recordedDigits+1)
	if err := other.RecordValue(1); err != nil {
		t.Fatal(err)
	}
	durations := NewHistogram()
	if err := durations.RecordValue(1); err != nil {
		t.Fatal(err)
	}
	perClient := NewPerClientHistogram()
	if err := perClient.RecordValue(1); err != nil {
		t.Fatal(err)
	}
	for name, planted := range map[string]Run{
		"durations of 1 to MaxInt64": {Speed: Speed{Handoff: Distribution{Count: 1, Histogram: encode(wide)}}},
		"the rest":                   {Waiting: Waiting{PerClient: Distribution{Rest: &Rest{CensoredHistogram: encode(wide)}}}},
		"acquisitions":               {Fairness: Fairness{PerClient: encode(wide)}},
		"four digits":                {Speed: Speed{Handoff: Distribution{Count: 1, EnteredHistogram: encode(other)}}},
		"acquisitions for durations": {Speed: Speed{Handoff: Distribution{Count: 1, Histogram: encode(perClient)}}},
		"durations for acquisitions": {Fairness: Fairness{PerClient: encode(durations)}},
	} {
		var document bytes.Buffer
		if err := WriteJSON(&document, &Report{Runs: []Run{planted}}); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ReadJSON(bytes.NewReader(document.Bytes()))
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "it counts 1 to ") {
			t.Errorf("%s: %v", name, err)
		}
		const most = 8 << 20 // a wide histogram takes 50 MB
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("%s: %d bytes of JSON took %d MB", name, document.Len(), took>>20)
		}
	}
	var document bytes.Buffer
	own := Run{
		Speed: Speed{Handoff: Distribution{Count: 1, Histogram: encode(durations)}}, Fairness: Fairness{PerClient: encode(perClient)},
	}
	if err := WriteJSON(&document, &Report{Runs: []Run{own}}); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadJSON(&document); err != nil {
		t.Errorf("lockbench's own: %v", err)
	}
}
