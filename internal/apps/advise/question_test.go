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

func TestQuestionsNameTheirFaults(t *testing.T) {
	t.Parallel()
	q := asked(func(q *Question) {
		q.For, q.Rounds, q.Workload.Clients, q.Named = "fun", 0, 0, variants("setnx")
	})
	err := q.Validate()
	if err == nil {
		t.Fatal("there are none")
	}
	for _, want := range []string{
		`--for must be efficiency or correctness, not "fun"`, "--runs must be at least 1",
		"--clients must be at least 1",
		"--strategy: setnx: unsafe: ", "there is no lock to compare",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it does not say %q: %v", want, err)
		}
	}
	if err := asked(nil).Validate(); err != nil {
		t.Error(err)
	}
}

func TestChoicesNameWhatToImport(t *testing.T) {
	t.Parallel()
	const ours = "github.com/lockbench/lockbench/strategies/"
	const theirs = "github.com/go-redsync/redsync/v4"
	spin, redsync, handoff, fenced := like("spin"), like("redsync:tuned=true"), like("handoff"), like("fenced")
	for _, test := range []struct {
		name     string
		question func(*Question)
		best     string
		locks    []lock
		take     string
		other    string
	}{
		{"ours, and theirs", nil, "handoff", []lock{spin, redsync, handoff}, ours + "handoff", theirs},
		{"theirs alone", nil, "redsync:tuned=true", []lock{spin, redsync, handoff}, theirs, ""},
		{
			"a mutex in front", nil, "gated:spin",
			[]lock{like("gated:spin"), redsync},
			ours + "gated around " + ours + "polled", theirs,
		},
		{
			"theirs in another language", func(q *Question) { q.For = Correctness }, "fenced",
			[]lock{fenced, handoff},
			ours + "redisson", "org.redisson:redisson",
		},
		{
			"a consensus store", func(q *Question) { q.For, q.Workload.Fence = Correctness, workloads.FenceOff },
			"fenced",
			[]lock{fenced},
			"", "org.redisson:redisson",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for i := range test.locks {
				if test.locks[i].name == test.best {
					test.locks[i].served *= 2
				}
			}
			a := asked(test.question).advise(measured{Locks: reported(6, "", test.locks...)})
			sound(t, a)
			other := ""
			if a.Choice.Library != nil {
				other = a.Choice.Library.Package
			}
			if !strings.HasPrefix(a.Choice.Take, test.take) || other != test.other {
				t.Errorf("it says %q and %q, want %q and %q", a.Choice.Take, other, test.take, test.other)
			}
		})
	}
}

func TestEachPurposeHasAThirdPartyLibrary(t *testing.T) {
	t.Parallel()
	for _, purpose := range either {
		found := false
		all, _ := asked(func(q *Question) { q.For = purpose }).candidates()
		for _, v := range all {
			info := v.Info()
			found = found || len(info.Libraries) > 0 && (purpose == Efficiency || info.Claims.Fencing)
		}
		if !found {
			t.Errorf("%s has none", purpose)
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
		for _, plan := range q.Plans() {
			for _, command := range Commands(plan) {
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
		case q.Expected() > allowed && window > leastWindow:
			t.Fatalf("it takes %v", q.Expected())
		case q.Needed() == 0 && window+10*time.Millisecond < want:
			t.Fatalf("%s: %v is less than %v, and it does not say so", w.Describe(), window, want)
		case q.Needed() > 0:
			short++
			if q.Needed()+10*time.Millisecond < want || q.Needed() <= window {
				t.Fatalf("%s: it says that %v is needed, and that is %v", w.Describe(), q.Needed(), want)
			}
		}
	}
	if short < 25 || short > 475 {
		t.Errorf("%d of 500 questions have too short a window: the test looks at one kind only", short)
	}
}

// TestTheExampleHasTimeEnough is the question of README.
func TestTheExampleHasTimeEnough(t *testing.T) {
	t.Parallel()
	for _, purpose := range either {
		q := asked(func(q *Question) {
			q.For, q.Workload.Clients, q.Workload.Instances = purpose, 200, 4
		}).Sized(false, false)
		if q.Needed() != 0 || time.Duration(q.Workload.Duration) < 2*time.Second || q.Expected() > allowed {
			t.Errorf("%s: windows of %v, %v needed, %v in all", purpose, q.Workload.Duration, q.Needed(), q.Expected())
		}
	}
}

func TestGivenWindowsStay(t *testing.T) {
	t.Parallel()
	long := workloads.Duration(time.Hour)
	q := asked(func(q *Question) { q.Workload.Duration, q.Workload.Warmup = long, long }).Sized(true, true)
	if q.Workload.Duration != long || q.Workload.Warmup != long || q.Needed() != 0 {
		t.Errorf("%v after %v, %v needed", q.Workload.Duration, q.Workload.Warmup, q.Needed())
	}
}
