package engine

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/workloads"
)

// The same seed is the same sequence of keys, holds and arrivals, in this version
// and the next.
func TestASeedIsASequence(t *testing.T) {
	var draft workloads.Draft
	for name, value := range map[string]string{
		"clients": "2", "keys": "16", "key-dist": "zipf:0.99", "hold": "lognormal:2ms,0.8", "think": "exp:1ms", "rate": "1000/s", "seed": "42",
	} {
		if err := draft.Give(name, value); err != nil {
			t.Fatal(err)
		}
	}
	points, err := draft.Points()
	if err != nil {
		t.Fatal(err)
	}
	w := points[0].Workload
	var drawn strings.Builder
	a := newArrivals(w, 0, 0, uint64(w.Seed)+1)
	chooser := w.KeyDist.Over(w.Keys)
	for id := range w.Clients {
		random := clientRandom(w, 1, id)
		for range 8 {
			fmt.Fprintf(&drawn, "client %d: key %d, hold %v, think %v\n", id, chooser.Choose(random), w.Hold.Draw(random), w.Think.Draw(random))
		}
	}
	for range 8 {
		due, random := a.arrive()
		fmt.Fprintf(&drawn, "arrival at %v: key %d, hold %v\n", time.Duration(due), chooser.Choose(random), w.Hold.Draw(random))
	}
	golden.Compare(t, filepath.Join("testdata", "seed.golden"), drawn.String())
	if clientRandom(w, 2, 0).Uint64() == clientRandom(w, 1, 0).Uint64() {
		t.Error("two rounds draw alike")
	}
}
