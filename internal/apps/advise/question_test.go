package advise

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

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
			if info := v.Info(); info.Caveat != "" || info.Capacity != 1 || !info.Claims.Exclusion || !info.Claims.Recovery {
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
	for _, want := range []string{`--for must be efficiency or correctness, not "fun"`, "--runs must be at least 1", "--clients must be at least 1", "--strategy: setnx: unsafe: ", "there is no lock to compare"} {
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
	spin, redsync, handoff := lock{"spin", 100, 20, false, 50, nil}, lock{"redsync:tuned=true", 100, 20, false, 50, nil}, lock{"handoff", 100, 20, false, 50, nil}
	fenced := lock{"fenced", 100, 20, false, 50, nil}
	for _, test := range []struct {
		name     string
		question func(*Question)
		best     string
		locks    []lock
		take     string
		other    string
	}{
		{"ours, and theirs", nil, "handoff", []lock{spin, redsync, handoff}, ours + "handoff", "github.com/go-redsync/redsync/v4"},
		{"theirs alone", nil, "redsync:tuned=true", []lock{spin, redsync, handoff}, "github.com/go-redsync/redsync/v4", ""},
		{"a mutex in front", nil, "gated:spin", []lock{{"gated:spin", 100, 20, false, 50, nil}, redsync}, ours + "gated around " + ours + "polled", "github.com/go-redsync/redsync/v4"},
		{"theirs in another language", func(q *Question) { q.For = Correctness }, "fenced", []lock{fenced, handoff}, ours + "redisson", "org.redisson:redisson"},
		{"a consensus store", func(q *Question) { q.For, q.Workload.Fence = Correctness, workloads.FenceOff }, "fenced", []lock{fenced}, "", "org.redisson:redisson"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for i := range test.locks {
				if test.locks[i].name == test.best {
					test.locks[i].served *= 2
				}
			}
			a := asked(test.question).advise(measured{Locks: one(reported(6, "", test.locks...))})
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
	for topology, want := range map[string]bool{"": false, "single": false, "nodes:2": false, "nodes:3": true, "nodes:5": true, "replicas:3": false, "cluster:3": false} {
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
		"auto": "", "redis://h:1/2?protocol=2": "--redis\nredis://h:1/2?protocol=2", "redis://u:geheim@h:1": "", "geheim@h:1": "", "redis://h?password=geheim": "",
	} {
		q := asked(func(q *Question) {
			q.Redis = lockbench.StoreOptions{Address: address, Topology: "nodes:3", CAFile: "a b's.pem"}
		})
		for _, plan := range q.Plans() {
			for _, command := range Commands(plan) {
				words, err := exec.Command("sh", "-c", strings.Replace(command, "lockbench", "printf '%s\\n'", 1)).Output()
				if err != nil || strings.Contains(command, "geheim") || !strings.Contains(string(words), "--topology\nnodes:3\n--ca-file\na b's.pem\n") {
					t.Errorf("%v: %s", err, command)
				}
				if !strings.Contains(string(words), want) || strings.Contains(string(words), "--redis") != (want != "") {
					t.Errorf("%s: %s", address, command)
				}
			}
		}
	}
}
