package locktest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

// tally is what was found of one lock by looks at it.
type tally struct {
	looks, misses int
	took          time.Duration // all looks
	missed        []string      // what was seen instead, of the last few misses
}

// detection is how often the suite finds a fault when it is run once.
type detection struct {
	mu  sync.Mutex
	all map[string]tally // by the subject's name
}

const (
	mostMisses   = 1 // of all looks at one broken locker
	looksAtATime = 8
)

// TestDetection looks again and again at every broken locker, each time as a user does, once, with the
// check that is meant for its fault, and writes how often that was found to
// docs/evidence/DETECTION.md in the directory LOCKBENCH_DETECTION. It looks LOCKBENCH_LOOKS times at each, in an hour
// at most.
func TestDetection(t *testing.T) {
	dir := os.Getenv("LOCKBENCH_DETECTION")
	if dir == "" {
		t.Skip("slow: make soak runs it")
	}
	looks := 100
	if text := os.Getenv("LOCKBENCH_LOOKS"); text != "" {
		var err error
		if looks, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	d := &detection{all: map[string]tally{}}
	d.atATime(ctx, t, looks)
	if err := os.WriteFile(filepath.Join(dir, "docs", "evidence", "DETECTION.md"), d.table(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, s := range broken() {
		got := d.all[s.name]
		if got.misses > mostMisses {
			t.Errorf("%s: missed %d times in %d looks: %q", s.name, got.misses, got.looks, got.missed)
		}
	}
}

// atATime looks at each broken locker so often, in turn, so that all have had as many looks when time is over.
func (d *detection) atATime(ctx context.Context, t *testing.T, often int) {
	turn := make(chan struct{}, looksAtATime)
	var all sync.WaitGroup
	defer all.Wait()
	for n := range often {
		for _, s := range broken() {
			turn <- struct{}{}
			if ctx.Err() != nil {
				return
			}
			all.Go(func() {
				defer func() { <-turn }()
				t.Run(fmt.Sprint(s.name, " ", n+1), func(t *testing.T) { d.look(ctx, t, s) })
			})
		}
	}
}

// look judges a broken locker by the check that is meant for its fault.
func (d *detection) look(ctx context.Context, t *testing.T, s subject) {
	fixture := s.fixture(t)
	fixture.Patience = s.patience()
	v := check(t, s.check).Judge(ctx, fixture, s.info)
	if errors.Is(v.Err, context.DeadlineExceeded) && ctx.Err() != nil { // it was ended
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	had := d.all[s.name]
	had.looks++
	had.took += v.Took
	if !s.told(v) {
		had.misses++
		had.missed = append(had.missed, v.String())
		had.missed = had.missed[max(0, len(had.missed)-5):]
	}
	d.all[s.name] = had
}

func (d *detection) table() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# How often the suite finds a fault

Package strategies/locktest is tested on correct locks with one fault each. A user runs the suite once, so each row says how
often one run finds the fault: a look is one run of the check that is meant for it, on servers of its own, and it counts only
if the check says what is wrong in the words of that promise. Not more than %d look at each may miss.

Written by %[2]s on %[3]s, %[4]s/%[5]s with %[6]d cores, %[7]d looks at a time.

| the lock has this fault | the check | the promise | looks | missed | found | a look takes |
| --- | --- | --- | ---: | ---: | ---: | ---: |
`, mostMisses, "`make soak`", time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(),
		looksAtATime)
	var sum tally
	for _, s := range broken() {
		got, looked := d.all[s.name], "0 | – | – | –"
		if n := got.looks; n > 0 {
			found := 100 * float64(n-got.misses) / float64(n)
			looked = fmt.Sprintf("%d | %d | %.0f %% | %.1f s", n, got.misses, found, got.took.Seconds()/float64(n))
		}
		sum.looks, sum.misses = sum.looks+got.looks, sum.misses+got.misses
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", s.name, s.check, s.promise, looked)
	}
	fmt.Fprintf(&b, "\n%d broken lockers, %d looks, %d missed.\n", len(broken()), sum.looks, sum.misses)
	return b.Bytes()
}
