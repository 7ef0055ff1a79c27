package locktest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// tally is what was found of one lock by looks at it.
type tally struct {
	Looks, Misses int
	Took          time.Duration // all looks
	Missed        []string      // what was seen instead, of the last few misses
	// FAILs of all checks on one server, of those the false ones, and what these said.
	Failed, False int
	Lies          []string
	Shared        bool // it has been judged so
}

// detection is how often the suite finds a fault when it is run once.
type detection struct {
	// Suite is that of the source, since what another one found says nothing of this.
	Suite  string
	Broken map[string]*tally // by the subject's name
	mu     sync.Mutex
}

const (
	mostMisses   = 1 // of all looks at one broken locker
	looksAtATime = 8
)

// TestDetection looks again and again at every broken locker, each time as a user does,
// once, with the check that is meant for its fault, and writes how often that was found
// to docs/evidence/DETECTION.md, with how many FAILs are false if all checks share a server, in the directory LOCKBENCH_DETECTION. It keeps its books there in
// detection.json and goes on where it was interrupted.
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
	limit := time.Hour
	if text := os.Getenv("LOCKBENCH_LOOKS_FOR"); text != "" {
		var err error
		if limit, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	books := filepath.Join(dir, "detection.json")
	d := readDetection(t, books)
	d.share(ctx, t, books)
	d.look(ctx, t, looks, books)
	if err := os.WriteFile(filepath.Join(dir, "docs", "evidence", "DETECTION.md"), d.table(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, s := range broken() {
		got := d.Broken[s.name]
		if got != nil && got.False > 0 {
			t.Errorf("%s: of %d FAILs on a shared server %d are false: %q", s.name, got.Failed, got.False, got.Lies)
		}
		if got != nil && got.Misses > mostMisses {
			t.Errorf("%s: missed %d times in %d looks: %q", s.name, got.Misses, got.Looks, got.Missed)
		}
	}
}

// share judges each broken locker on Redis by all checks on one server, as the package's comment
// has it. None has the Prefix, which many an author forgets.
func (d *detection) share(ctx context.Context, t *testing.T, books string) {
	turn := make(chan struct{}, looksAtATime)
	var all sync.WaitGroup
	defer all.Wait()
	for _, s := range broken() {
		if s.info.Nodes != 1 || d.of(s.name).Shared {
			continue
		}
		turn <- struct{}{}
		all.Go(func() {
			defer func() { <-turn }()
			t.Run(s.name+" on one server", func(t *testing.T) {
				fixture := func(t *testing.T) locktest.Fixture {
					f := trial.On(t, 1, func(c goredis.Config) (strategies.Locker, error) { c.Prefix = ""; return s.open(c) })
					f.Rounds, f.Drawings, f.Patience = 6, t.TempDir(), s.patience()
					return f
				}
				failed, lies := falseFails(ctx, t, fixture(t), fixture, s.info)
				if ctx.Err() != nil {
					return
				}
				d.change(s.name, func(had *tally) {
					had.Shared, had.Failed, had.False, had.Lies = true, failed, len(lies), lies
				})
				if err := d.write(books); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// look takes looks in turn, so that all have had as many when time is over.
func (d *detection) look(ctx context.Context, t *testing.T, looks int, books string) {
	turn := make(chan struct{}, looksAtATime)
	had := map[string]int{}
	for _, s := range broken() {
		had[s.name] = d.of(s.name).Looks
	}
	var all sync.WaitGroup
	defer all.Wait()
	for n := range looks {
		for _, s := range broken() {
			if had[s.name] > n {
				continue
			}
			turn <- struct{}{}
			if ctx.Err() != nil {
				return
			}
			all.Go(func() {
				defer func() { <-turn }()
				t.Run(fmt.Sprint(s.name, " ", n+1), func(t *testing.T) {
					d.add(ctx, s, s.lookedAt(ctx, t))
					if err := d.write(books); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// lookedAt is the verdict of the check that is meant for the fault.
func (s subject) lookedAt(ctx context.Context, t *testing.T) locktest.Verdict {
	fixture := s.fixture(t)
	fixture.Patience = s.patience()
	return check(t, s.check).Judge(ctx, fixture, s.info)
}

func (d *detection) of(name string) tally {
	d.mu.Lock()
	defer d.mu.Unlock()
	if had := d.Broken[name]; had != nil {
		return *had
	}
	return tally{}
}

func (d *detection) add(ctx context.Context, s subject, v locktest.Verdict) {
	if errors.Is(v.Err, context.DeadlineExceeded) && ctx.Err() != nil { // it was ended
		return
	}
	d.change(s.name, func(had *tally) {
		had.Looks++
		had.Took += v.Took
		if !s.told(v) {
			had.Misses++
			had.Missed = append(had.Missed, v.String())
			had.Missed = had.Missed[max(0, len(had.Missed)-5):]
		}
	})
}

func (d *detection) change(name string, do func(*tally)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Broken[name] == nil {
		d.Broken[name] = &tally{}
	}
	do(d.Broken[name])
}

func readDetection(t *testing.T, file string) *detection {
	t.Helper()
	d := &detection{Suite: sourceSum(t), Broken: map[string]*tally{}}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return d
	}
	if err != nil {
		t.Fatal(err)
	}
	had := &detection{}
	if err := json.Unmarshal(text, had); err != nil {
		t.Fatalf("read %s: %v", file, err)
	}
	if had.Suite != d.Suite {
		t.Logf("%s is of another suite: it is begun anew", file)
		return d
	}
	return had
}

func (d *detection) write(file string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("write the books: %w", err)
	}
	return os.WriteFile(file, text, 0o644)
}

// sourceSum is of the suite's source and its broken lockers'.
func sourceSum(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	for _, file := range slices.Sorted(slices.Values(files)) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func (d *detection) table() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# How often the suite finds a fault

Package strategies/locktest is tested on correct locks with one fault each. A user runs the suite once, so each row says how
often one run finds the fault: a look is one run of the check that is meant for it, on servers of its own, and it counts only
if the check says what is wrong in the words of that promise. Not more than %d look at each may miss.

The last column is of all checks, one after the other on one server that they share, with a lock that ignores the Prefix:
how many of them FAIL, and how many of these FAILs are false, since the lock passes that check on servers of its own.

Written by %[2]s on %[3]s, %[4]s/%[5]s with %[6]d cores, %[7]d looks at a time.

| the lock has this fault | the check | the promise | looks | missed | found | a look takes | FAILs on one server, false |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |
`, mostMisses, "`make soak`", time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), looksAtATime)
	total, missed, failed, lies := 0, 0, 0, 0
	for _, s := range broken() {
		got, looked, shared := d.of(s.name), "0 | – | – | –", "–"
		if n := got.Looks; n > 0 {
			looked = fmt.Sprintf("%d | %d | %.0f %% | %.1f s", n, got.Misses, 100*float64(n-got.Misses)/float64(n), (got.Took / time.Duration(n)).Seconds())
		}
		if got.Shared {
			shared = fmt.Sprintf("%d, %d", got.Failed, got.False)
		}
		total, missed, failed, lies = total+got.Looks, missed+got.Misses, failed+got.Failed, lies+got.False
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", s.name, s.check, s.promise, looked, shared)
	}
	fmt.Fprintf(&b, "\n%d broken lockers, %d looks, %d missed; %d FAILs on one server, %d of them false.\n", len(broken()), total, missed, failed, lies)
	return b.Bytes()
}

// The table says what the books say, and what has not been looked at.
func TestDetectionTable(t *testing.T) {
	name := broken()[0].name
	d := &detection{Broken: map[string]*tally{name: {Looks: 50, Misses: 1, Took: 100 * time.Second, Shared: true, Failed: 6, False: 4}}}
	table := string(d.table())
	for _, want := range []string{
		"| " + name + " | exclusion | never more holders than permits | 50 | 1 | 98 % | 2.0 s | 6, 4 |",
		"| 0 | – | – | – | – |",
		fmt.Sprintf("%d broken lockers, 50 looks, 1 missed; 6 FAILs on one server, 4 of them false.", len(broken())),
	} {
		if !strings.Contains(table, want) {
			t.Errorf("the table does not say %q:\n%s", want, table)
		}
	}
}
