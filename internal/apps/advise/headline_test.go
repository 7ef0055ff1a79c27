package advise

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/workloads"
)

func TestHeadlinesNameWhatToImport(t *testing.T) {
	t.Parallel()
	const ours = "github.com/lockbench/lockbench/strategies/"
	spin, redsync, handoff := lock{"spin", 100, 20, false, 50, nil}, lock{"redsync:tuned=true", 100, 20, false, 50, nil}, lock{"handoff", 100, 20, false, 50, nil}
	fenced := lock{"fenced", 100, 20, false, 50, nil}
	for _, test := range []struct {
		name     string
		question func(*Question)
		best     string
		locks    []lock
		packages string
		other    string
	}{
		{"ours, and theirs", nil, "handoff", []lock{spin, redsync, handoff}, ours + "handoff", "github.com/go-redsync/redsync/v4"},
		{"theirs alone", nil, "redsync:tuned=true", []lock{spin, redsync, handoff}, "github.com/go-redsync/redsync/v4", ""},
		{"a mutex in front", nil, "gated:spin", []lock{{"gated:spin", 100, 20, false, 50, nil}, redsync}, ours + "gated " + ours + "spin", "github.com/go-redsync/redsync/v4"},
		{"theirs in another language", func(q *Question) { q.For = Correctness }, "fenced", []lock{fenced, handoff}, ours + "fenced", "org.redisson:redisson"},
		{"a consensus store", func(q *Question) { q.For, q.Workload.Fence = Correctness, workloads.FenceOff }, "fenced", []lock{fenced}, "go.etcd.io/etcd/client/v3/concurrency", "org.apache.curator:curator-recipes"},
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
			if a.Headline.Alternative != nil {
				other = a.Headline.Alternative.Package
			}
			if got := strings.Join(a.Headline.Packages, " "); got != test.packages || other != test.other {
				t.Errorf("it says %q and %q, want %q and %q", got, other, test.packages, test.other)
			}
			if named(a.Choice) == "fenced" && (len(a.Assumes) < 2 || !strings.Contains(a.Headline.RightIf, "reads too")) {
				t.Errorf("it assumes %+v and says %q", a.Assumes, a.Headline.RightIf)
			}
		})
	}
}

func TestEachPurposeHasSomebodyElsesLibrary(t *testing.T) {
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
		all, out := q.candidates()
		if got := strings.Contains(names(all), "redlock"); got != want {
			t.Errorf("%q: it measures %s", topology, names(all))
		}
		for _, left := range out {
			if left.Strategy == "redlock" && !strings.Contains(left.Why, "independent") {
				t.Errorf("%q: it is left out because %s", topology, left.Why)
			}
			if left.Strategy == "blpop" && (topology == "cluster:3") != strings.Contains(left.Why, "cluster") {
				t.Errorf("%q: blpop is left out because %s", topology, left.Why)
			}
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
