package observe

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/workloads"
)

// The test captures MONITOR on three nodes while clients use a Redlock. The joined captures must show as many leases,
// holds and waits as the engine counted, and no fault of the lock.
func TestJoinedNodeCaptures(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"redlock", "redsync"} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			run, seen, d := runOnNodes(t, 3, strategy, func(w *workloads.Spec) { w.Iterations = 60 })
			const clients = 8
			leases := float64(run.Speed.Acquisitions)
			within(t, "leases", float64(seen.Acquisitions), leases, 0, 2*clients)
			within(t, "holds", float64(seen.Hold.Count), leases, 0, 2*clients)
			within(t, "waits", float64(seen.Wait.Count), leases, 0, 2*clients)
			t.Logf("| %s | %d / %d | %d tries | wait p50 %v / %v | hold p50 %v / %v", strategy, seen.Acquisitions,
				run.Speed.Acquisitions, seen.Tries, seen.Wait.P50, run.Waiting.PerAcquisition.P50, seen.Hold.P50,
				run.Speed.Hold.P50)
			if d.Capture.Nodes != 3 || seen.unsafe()+seen.Expired+seen.LateReleases > 0 {
				t.Errorf("a good lock on %d nodes looks unsafe: %+v", d.Capture.Nodes, seen.Counts)
			}
		})
	}
}

func TestLeaseNeedsMajorityOfNodes(t *testing.T) {
	t.Parallel()
	take := func(ms int, owner string) string { return fmt.Sprintf("%d %s SET k %s NX PX 500", ms, owner, owner) }
	give := func(ms int, owner string) []string {
		return []string{
			fmt.Sprintf("%d %s EVALSHA rel 1 k %s", ms, owner, owner), fmt.Sprintf("%d > GET k", ms),
			fmt.Sprintf("%d > DEL k", ms),
		}
	}
	join := func(parts ...[]string) []string { return slices.Concat(append([][]string{known}, parts...)...) }
	one := func(line string) []string { return []string{line} }
	idle := one("9000 c9 PING")
	for _, test := range []struct {
		name         string
		nodes        [3][]string
		want         Counts
		holds, waits time.Duration // the longest hold and wait
	}{
		{"a lease of all", [3][]string{
			join(one(take(100, "a")), give(150, "a")), join(one(take(101, "a")), give(151, "a")),
			join(one(take(102, "a")), give(152, "a")),
		}, Counts{Acquisitions: 1, Tries: 1, Releases: 1}, 50 * time.Millisecond, time.Millisecond},
		{"a lease of two", [3][]string{
			join(one(take(100, "a")), give(150, "a")), join(one(take(101, "a")), give(151, "a")), known,
		}, Counts{Acquisitions: 1, Tries: 1, Releases: 1}, 49 * time.Millisecond, time.Millisecond},
		{
			"split votes, then a lease",
			[3][]string{
				join(one(take(100, "a")), one(take(101, "b")), give(110, "a"), one(take(120, "b")), give(200, "b")),
				join(one(take(100, "b")), one(take(101, "a")), give(110, "b"), one(take(120, "b")), give(201, "b")),
				join(one(take(120, "b")), give(202, "b")),
			},
			Counts{Acquisitions: 1, Tries: 2, Releases: 1, TriedOnce: 0, Open: 1},
			81 * time.Millisecond,
			20 * time.Millisecond,
		},
		{"a client gives up", [3][]string{
			join(one(take(100, "a")), give(150, "a"), idle),
			join(one(take(100, "a")), one(take(110, "b")), one(take(120, "b")), give(150, "a"), idle),
			join(one(take(100, "a")), one(take(110, "b")), one(take(120, "b")), give(150, "a"), idle),
		}, Counts{Acquisitions: 1, Tries: 2, Releases: 1, GaveUp: 1}, 50 * time.Millisecond, 10 * time.Millisecond},
		{"values that no majority has", [3][]string{
			join(one(take(100, "a")), give(150, "a")), join(one(take(100, "b")), give(150, "b")),
			join(one(take(100, "c")), give(150, "c")),
		}, Counts{Tries: 1, Open: 3}, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var streams []io.Reader
			for _, lines := range test.nodes {
				streams = append(streams, strings.NewReader(stream(lines...)))
			}
			d, err := ReadNodes(t.Context(), streams, Options{Top: 5, Trace: true})
			if err != nil {
				t.Fatal(err)
			}
			seen := d.All.Counts
			seen.Commands, seen.AtStart, seen.IdleRelease = 0, 0, 0
			if seen != test.want {
				t.Errorf("observed %+v, want %+v", seen, test.want)
			}
			if longest := d.All.Hold.Max; test.holds > 0 && (longest == nil || time.Duration(longest.NS) != test.holds) {
				t.Errorf("the longest hold is %v, want %v", longest, test.holds)
			}
			if longest := d.All.Wait.Max; test.waits > 0 && (longest == nil || time.Duration(longest.NS) < test.waits) {
				t.Errorf("the longest wait is %v, want at least %v", longest, test.waits)
			}
			if none := strings.Contains(fmt.Sprint(d.Findings), "not the nodes of one Redlock"); none !=
				(test.want.Acquisitions == 0) {
				t.Errorf("findings %v", d.Findings)
			}
		})
	}
}
