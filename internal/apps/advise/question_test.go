package advise

import (
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

func TestUnsafeStrategiesAreNeverMeasured(t *testing.T) {
	t.Parallel()
	for _, purpose := range either {
		q := asked(func(q *Question) { q.For, q.Named = purpose, variants("all") })
		chosen, out := q.candidates()
		for _, v := range chosen {
			info := v.Info()
			if info.Caveat != "" || info.Capacity != 1 || !info.Claims.Exclusion || !info.Claims.Recovery {
				t.Errorf("%s is a candidate", v.Name())
			}
		}
		for _, name := range []string{"noop", "local", "atomic", "setnx", "setnx-expire", "semaphore"} {
			if !slices.ContainsFunc(out, func(l results.LeftOut) bool { return l.Strategy == name && l.Why != "" }) {
				t.Errorf("%s is not left out", name)
			}
		}
	}
}

func TestChoicesNameWhatToImport(t *testing.T) {
	t.Parallel()
	const ours, theirs = "github.com/lockbench/lockbench/strategies/", "github.com/go-redsync/redsync/v4"
	for _, test := range []struct {
		purpose    Purpose
		best, next string
		take       string
		other      string // the package of the best third-party library
	}{
		{Efficiency, "handoff", "redsync:tuned=true", ours + "handoff", theirs},
		{Efficiency, "redsync:tuned=true", "handoff", theirs, ""},
		{Efficiency, "gated:spin", "redsync:tuned=true", ours + "gated around " + ours + "polled", theirs},
		{Correctness, "fenced", "handoff", ours + "redisson", "org.redisson:redisson"},
	} {
		best := like(test.best)
		best.served *= 2
		a := asked(func(q *Question) { q.For = test.purpose }).
			advise(reported(6, best, like(test.next)))
		sound(t, a)
		other := ""
		if a.Choice.Library != nil {
			other = a.Choice.Library.Package
		}
		if !strings.HasPrefix(a.Choice.Take, test.take) || other != test.other {
			t.Errorf("%s: it says %q and %q, want %q and %q", test.best, a.Choice.Take, other, test.take, test.other)
		}
	}
}

func TestRedlockTakesIndependentNodes(t *testing.T) {
	t.Parallel()
	for topology, want := range map[string]bool{
		"": false, "single": false, "nodes:2": false, "nodes:3": true, "nodes:5": true,
		"replicas:3": false, "cluster:3": false,
	} {
		q := asked(func(q *Question) { q.Redis.Topology = topology })
		all, _ := q.candidates()
		if got := strings.Contains(names(all), "redlock"); got != want {
			t.Errorf("%q: it measures %s", topology, names(all))
		}
	}
}

// TestCommandsKeepSecrets and are read by a shell as they were meant.
func TestCommandsKeepSecrets(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"auto": "", "redis://h:1/2?protocol=2": "--redis\nredis://h:1/2?protocol=2", "redis://u:geheim@h:1": "",
		"geheim@h:1": "", "redis://h?password=geheim": "",
	} {
		q := asked(func(q *Question) {
			q.Redis = lockbench.StoreOptions{Address: address, Topology: "nodes:3", CAFile: "a b's.pem"}
		})
		command := q.Command()
		shown := strings.Replace(command, "lockbench", "printf '%s\\n'", 1)
		output, err := exec.Command("sh", "-c", shown).Output()
		words := string(output)
		if err != nil || strings.Contains(command, "geheim") ||
			!strings.Contains(words, "--topology\nnodes:3\n--ca-file\na b's.pem\n") {
			t.Errorf("%v: %s", err, command)
		}
		if !strings.Contains(words, want) || strings.Contains(words, "--redis") != (want != "") {
			t.Errorf("%s: %s", address, command)
		}
	}
}

func TestWindowsServeEveryClientTwice(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(6, 21))
	short := 0
	for range 500 {
		q := asked(func(q *Question) {
			q.For = either[random.IntN(2)]
			w := &q.Workload
			w.Clients, w.Keys = 1+random.IntN(2000), 1+random.IntN(50)
			w.Instances = min(w.Clients, 1+random.IntN(10))
			w.Hold = workloads.Fixed(time.Duration(random.IntN(20)) * time.Millisecond)
		}).Sized(false, false)
		w := q.Workload
		window, want := time.Duration(w.Duration), 2*time.Duration(w.Clients)*w.Hold.Mean()/time.Duration(w.Keys)
		switch {
		case window < leastWindow || time.Duration(w.Warmup) < leastWarmup:
			t.Fatalf("%v after %v is too short", window, w.Warmup)
		case q.Plan().Expected() > allowed && window > leastWindow:
			t.Fatalf("it takes %v", q.Plan().Expected())
		case q.Needed == 0 && window+10*time.Millisecond < want:
			t.Fatalf("%s: %v is less than %v, and it does not say so", w.Describe(), window, want)
		case q.Needed > 0:
			short++
			if q.Needed+10*time.Millisecond < want || q.Needed <= window {
				t.Fatalf("%s: it says that %v is needed, and that is %v", w.Describe(), q.Needed, want)
			}
		}
	}
	if short < 25 || short > 475 {
		t.Errorf("%d of 500 questions have too short a window: the test looks at one kind only", short)
	}
}
