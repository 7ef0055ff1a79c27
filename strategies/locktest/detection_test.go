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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/locktest/redisservers"
)

// tally is what was found of one lock by looks at it.
type tally struct {
	looks, misses int
	took          time.Duration // all looks
	missed        []string      // what was seen instead, of the last few misses
	// FAILs of all checks on one server, and what the false ones among them said.
	shared bool // it has been judged so
	failed int
	lies   []string
}

// detection is how often the suite finds a fault when it is run once.
type detection struct {
	mu  sync.Mutex
	all map[string]*tally // by the subject's name
}

const (
	mostMisses   = 1 // of all looks at one broken locker
	looksAtATime = 8
)

// TestDetection looks again and again at every broken locker, each time as a user does, once, with the
// check that is meant for its fault, and writes how often that was found to
// docs/evidence/DETECTION.md in the directory LOCKBENCH_DETECTION, with how many FAILs are false if
// all checks share a server. It looks LOCKBENCH_LOOKS times at each, in an hour at most.
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
	d := &detection{all: map[string]*tally{}}
	d.atATime(ctx, t, 1, d.share)
	d.atATime(ctx, t, looks, d.look)
	if err := os.WriteFile(filepath.Join(dir, "docs", "evidence", "DETECTION.md"), d.table(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, s := range broken() {
		got := d.of(s.name)
		for _, lie := range got.lies {
			t.Errorf("%s: one of %d FAILs on a shared server is false: %s", s.name, got.failed, lie)
		}
		if got.misses > mostMisses {
			t.Errorf("%s: missed %d times in %d looks: %q", s.name, got.misses, got.looks, got.missed)
		}
	}
}

// atATime judges each broken locker so often, in turn, so that all have had as many looks when time
// is over.
func (d *detection) atATime(ctx context.Context, t *testing.T, often int,
	judge func(context.Context, *testing.T, subject),
) {
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
				t.Run(fmt.Sprint(s.name, " ", n+1), func(t *testing.T) { judge(ctx, t, s) })
			})
		}
	}
}

// share judges a broken locker on Redis by all checks on one server, as the package's comment has it.
// It has no Prefix, which many an author forgets.
func (d *detection) share(ctx context.Context, t *testing.T, s subject) {
	if s.info.Nodes != 1 {
		return
	}
	fixture := func(t *testing.T) locktest.Fixture {
		f := redisservers.Fixture(t, 1, func(c goredis.Config) (strategies.Locker, error) {
			c.Prefix = ""
			return s.open(c)
		})
		f.Rounds, f.Drawings, f.Patience = 6, t.TempDir(), s.patience()
		return f
	}
	failed, lies := falseFails(ctx, t, fixture(t), fixture, s.info)
	if ctx.Err() == nil {
		d.change(s.name, func(had *tally) { had.shared, had.failed, had.lies = true, failed, lies })
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
	d.change(s.name, func(had *tally) {
		had.looks++
		had.took += v.Took
		if !s.told(v) {
			had.misses++
			had.missed = append(had.missed, v.String())
			had.missed = had.missed[max(0, len(had.missed)-5):]
		}
	})
}

func (d *detection) of(name string) (had tally) {
	d.change(name, func(t *tally) { had = *t })
	return had
}

func (d *detection) change(name string, do func(*tally)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all[name] == nil {
		d.all[name] = &tally{}
	}
	do(d.all[name])
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
`, mostMisses, "`make soak`", time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(),
		looksAtATime)
	var sum tally
	for _, s := range broken() {
		got, looked, shared := d.of(s.name), "0 | – | – | –", "–"
		if n := got.looks; n > 0 {
			found := 100 * float64(n-got.misses) / float64(n)
			looked = fmt.Sprintf("%d | %d | %.0f %% | %.1f s", n, got.misses, found, got.took.Seconds()/float64(n))
		}
		if got.shared {
			shared = fmt.Sprintf("%d, %d", got.failed, len(got.lies))
		}
		sum.looks, sum.misses, sum.failed = sum.looks+got.looks, sum.misses+got.misses, sum.failed+got.failed
		sum.lies = append(sum.lies, got.lies...)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", s.name, s.check, s.promise, looked, shared)
	}
	fmt.Fprintf(&b, "\n%d broken lockers, %d looks, %d missed; %d FAILs on one server, %d of them false.\n",
		len(broken()), sum.looks, sum.misses, sum.failed, len(sum.lies))
	return b.Bytes()
}

// The table says what was found, and what has not been looked at.
func TestDetectionTable(t *testing.T) {
	name := broken()[0].name
	d := &detection{all: map[string]*tally{name: {
		looks: 50, misses: 1, took: 100 * time.Second, shared: true, failed: 6, lies: make([]string, 4),
	}}}
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
