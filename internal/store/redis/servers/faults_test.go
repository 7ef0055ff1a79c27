package servers

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch/redisserver"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// somebodys is a key of another program whose name contains the mark of the run.
const somebodys = "app:{e5700000:1:0}"

// marked either sets somebodys with a TTL on every node that accepts it, or returns the number of nodes that have it.
func marked(t *testing.T, server *Server, set bool) int {
	t.Helper()
	found := 0
	for _, n := range server.nodes {
		if set {
			// replicas refuse the write, and get the key from the primary
			_ = n.observer.Set(t.Context(), somebodys, 1, time.Hour).Err()
		} else {
			found += int(n.observer.Exists(t.Context(), somebodys).Val())
		}
	}
	return found
}

// executed reports whether the first node has executed a command.
func executed(t *testing.T, server *Server, command string) bool {
	t.Helper()
	stats, err := server.nodes[0].observer.Info(t.Context(), "commandstats").Result()
	must(t, err)
	return strings.Contains(stats, "cmdstat_"+command+":")
}

func halted(t *testing.T, o *outcome) {
	// The machine needs time to begin and to end the fault. This time counts as part of the fault but blocks no client.
	if s := o.strike; !s.Halts || s.LastedNS < int64(200*time.Millisecond) || *s.RecoveryNS < s.LastedNS ||
		s.Stall.NS < int64(100*time.Millisecond) {
		t.Errorf("strike %+v", s)
	}
}

func went(t *testing.T, o *outcome) {
	if o.strike.Halts || o.strike.Overlaps > 0 {
		t.Errorf("strike %+v", o.strike)
	}
}

func overlapped(t *testing.T, o *outcome) {
	broken := o.Safety.Broken.Has(results.Overlapped)
	if o.strike.Overlaps == 0 || o.strike.OverlapNS == 0 || !broken {
		t.Errorf("strike %+v, recovered after %v, broken %v, errors %v",
			o.strike, time.Duration(*o.strike.RecoveryNS), o.Safety.Broken, o.Errors)
	}
}

// slower returns a check that the slowest release took at least this long.
func slower(by time.Duration) func(*testing.T, *outcome) {
	return func(t *testing.T, o *outcome) {
		if o.Speed.Release.Max.NS < int64(by) {
			t.Errorf("nothing took longer: %+v, %+v", o.strike, o.Speed.Release.Max)
		}
	}
}

// leads returns a check that the node with this index is the primary.
func leads(place int) func(*testing.T, *outcome) {
	return func(t *testing.T, o *outcome) {
		if o.server.primary.Load() != o.server.nodes[place] || !o.strike.Halts && o.strike.Overlaps == 0 {
			t.Errorf("node %d is not the primary: strike %+v", place, o.strike)
		}
	}
}

func TestEveryFaultOfServersStrikes(t *testing.T) {
	t.Parallel()
	flushed := func(t *testing.T, o *outcome) {
		went(t, o)
		if len(o.Errors) > 0 || !executed(t, o.server, "script|flush") {
			t.Errorf("errors %v", o.Errors)
		}
	}
	woken := func(t *testing.T, o *outcome) {
		went(t, o)
		if o.strike.LostWakeUps > 0 || !executed(t, o.server, "client|kill") {
			t.Errorf("strike %+v, errors %v", o.strike, o.Errors)
		}
	}
	stalled := func(t *testing.T, o *outcome) {
		if o.strike.Stall.NS < int64(40*time.Millisecond) {
			t.Errorf("nothing stalled: %+v", o.strike)
		}
	}
	broke := func(t *testing.T, o *outcome) {
		if len(o.Errors) == 0 {
			t.Errorf("no connection broke: %+v", o.strike)
		}
	}
	othersGo := func(t *testing.T, o *outcome) {
		if o.strike.Halts {
			t.Errorf("two instances are left: %+v", o.strike)
		}
	}
	hung := func(t *testing.T, o *outcome) {
		halted(t, o)
		// Even without a fault, redsync's clients can get no lock for a tenth of a second when their votes are split.
		if o.strike.Stall.NS < int64(300*time.Millisecond) {
			t.Errorf("strike %+v", o.strike)
		}
	}
	silent := func(t *testing.T, o *outcome) {
		// The third of the clients whose connection is silent waits for a reply throughout the fault.
		if gap, others := o.longestGap(0); gap < 1500*time.Millisecond || others < 1 {
			t.Errorf("at most it got nothing for %v, in which others got %d locks", gap, others)
		}
	}
	together(t, []experiment{
		{"spin", "", "kill:at=100ms,for=200ms", brief, 0, halted},
		{"pubsub", "", "kill:at=100ms,for=200ms,data=keep", brief, 1, halted},
		{"handoff", "", "pause:at=100ms,for=200ms", brief, 1, halted},
		{"spin", "", "client-pause:at=100ms,for=200ms", brief, 1, halted},
		{"handoff", "", "script-flush:at=100ms", brief, 1, flushed},
		{"pubsub", "", "kill-subscribers:at=500ms", brief, 1, woken},
		{
			"spin:backoff=fixed,base=5ms", "replicas:1", "failover:at=100ms,for=100ms,lag=50ms", untilAnother, 2,
			all(overlapped, leads(1)),
		},
		// Node 1 was detached and received nothing, so node 2 must be promoted.
		{"spin", "replicas:2", "failover:at=100ms,for=100ms,promote=advanced", brief, 3, leads(2)},
		{ // the replica had confirmed writes that it had not stored
			"spin:backoff=fixed,base=5ms", "replicas:1", "failover:at=100ms,for=100ms,lag=1ms,promote=restarted",
			untilAnother, 0, all(overlapped, leads(1)),
		},
		{"redsync:delay=5ms", "nodes:3", "node-down:at=100ms,for=200ms", brief, 3, went},
		{"redsync:delay=5ms", "nodes:3", "node-hang:at=100ms,for=600ms,n=2", brief, 3, hung},
		{"redsync:delay=5ms", "nodes:3", "node-restart-empty:at=100ms,node=0,n=3", untilAnother, 0, overlapped},
		{"redsync:delay=5ms", "nodes:3", "node-expire-early:at=100ms,n=2", untilAnother, 3, overlapped},
		{"redsync:delay=5ms", "nodes:3", "node-drift:at=100ms,for=2s,n=2,percent=10000", untilAnother, 3, overlapped},
		{ // a SET takes twice the delay
			"spin", "", "latency:at=100ms,for=500ms,delay=20ms", brief, 1,
			all(went, stalled, slower(40*time.Millisecond)),
		},
		{"pubsub", "", "bandwidth:at=100ms,for=300ms,rate=1", brief, 1, slower(50 * time.Millisecond)}, // 150 bytes
		{"spin", "", "reset:at=100ms,for=100ms", brief, 1, broke},
		{"handoff", "", "partition:at=100ms,for=250ms", brief, 1, halted},
		{"handoff", "", "partition:at=100ms,for=250ms,instances=1", brief, 1, othersGo},
		{"spin", "", "half-open:at=100ms,for=2s,instances=1", brief, 1, silent},
	})
}

// Only the run's keys lose what a fast clock gains.
func TestDriftIsARate(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Address: redisserver.Quickest(), Topology: "nodes:3", RunID: "e5700000"})
	const ours = "lockbench:{e5700000:1:0}"
	const percent = 50
	client := s.nodes[1].observer
	fault, err := workloads.ParseFault("node-drift:percent=50")
	must(t, err)
	action, err := s.prepare(t.Context(), fault, store.RunMarks{
		Mark: "{e5700000:", Ours: func(key string) bool { return key == ours },
	})
	must(t, err)
	// In one transaction, so that only the fault makes their TTLs differ, however slow this machine is.
	_, err = client.TxPipelined(t.Context(), func(tx redis.Pipeliner) error {
		tx.Set(t.Context(), ours, 1, time.Hour)
		tx.Set(t.Context(), somebodys, 1, time.Hour)
		return nil
	})
	must(t, err)
	before := time.Now()
	must(t, action.Hit(t.Context()))
	begun := time.Now()
	time.Sleep(500 * time.Millisecond) // the check uses the rate, so a longer sleep does not matter
	short := time.Since(begun)
	must(t, action.End(t.Context()))
	var left, other *redis.DurationCmd
	_, err = client.TxPipelined(t.Context(), func(tx redis.Pipeliner) error {
		left, other = tx.PTTL(t.Context(), ours), tx.PTTL(t.Context(), somebodys)
		return nil
	})
	must(t, err)
	lost, least := other.Val()-left.Val(), short*percent/100/2
	if most := time.Since(before)*percent/100 + 10*time.Millisecond; lost < least || lost > most {
		t.Errorf("it lost %v, want %v to %v", lost, least, most)
	}
}

// all returns a check that runs all of these checks.
func all(checks ...func(*testing.T, *outcome)) func(*testing.T, *outcome) {
	return func(t *testing.T, o *outcome) {
		for _, check := range checks {
			check(t, o)
		}
	}
}

// A failover to a replica that has not received a lock loses it, although it was confirmed. WAIT protects the locks
// that the promoted replica has confirmed, and no others. With independent nodes a lock is lost if the nodes that
// forgot it, or were down when it was taken, form a majority without its holder.
func TestWhatCostsExclusion(t *testing.T) {
	t.Parallel()
	shared := func(want bool) func(*testing.T, *outcome) {
		return func(t *testing.T, o *outcome) {
			overlaps, broken := o.Safety.Overlaps > 0, len(o.Safety.Broken) > 0
			if overlaps != want || broken != want {
				t.Errorf("concurrent holders: %v, want %v: %+v, faults %+v, errors %v",
					overlaps, want, o.Safety, o.Faults, o.Errors)
			}
		}
	}
	// Holders find that they have lost the lock, whether or not another client has acquired it since: a client that
	// requests it must WAIT too, for a replica that first has to find its new primary.
	forgotten := func(t *testing.T, o *outcome) {
		if o.Safety.LostLeases == 0 {
			t.Errorf("every holder still had its lease: %+v, faults %+v, errors %v", o.Safety, o.Faults, o.Errors)
		}
	}
	// One of three nodes is down while a client locks the other two. Then one of these two forgets the lock. Once the
	// first node is back, it and the one that forgot are a majority.
	const down, forgets = "node-down:at=100ms,for=1ms,node=1", "node-restart-empty:at=100ms,node=2"
	together(t, []experiment{
		{"spin:wait-replicas=1", "replicas:1", "failover:at=150ms,for=100ms", "200ms", 2, shared(false)},
		{
			"spin:backoff=fixed,base=5ms,wait-replicas=1", "replicas:2", "failover:at=100ms,for=100ms,lag=50ms",
			untilOver, 3,
			forgotten,
		},
		{"redsync:delay=5ms", "nodes:3", down + " " + forgets, untilAnother, 2, shared(true)},
		{"redsync:delay=5ms", "nodes:3", down, untilAnother, 3, shared(false)},
	})
}

func TestCheckNamesWhatCannotBeDone(t *testing.T) {
	for _, test := range []struct {
		fault, topology  string
		started, allowed bool
		want             string
	}{
		{"kill", "single", true, false, ""},
		{"kill", "single", false, true, "--fault kill needs a Redis that lockbench starts itself"},
		{"kill:node=1", "single", true, false, "hits node 1, but the last node is 0"},
		{"script-flush", "single", false, false, "--allow-faults-on-my-server permits this"},
		{"script-flush", "single", false, true, ""},
		{"holder-crash", "single", false, false, ""},
		{"failover", "single", true, false, "--fault failover needs --topology replicas:N, not single"},
		{"failover", "replicas:1", true, false, ""},
		{"node-down:n=3", "nodes", true, false, ""}, // the default is five nodes
		{"node-down:n=5", "nodes", true, false, "hits node 5, but the last node is 4"},
		{"node-expire-early", "", false, true, ""}, // not known yet
	} {
		fault, err := workloads.ParseFault(test.fault)
		must(t, err)
		topology, err := ParseTopology(test.topology)
		must(t, err)
		wrong := Check([]workloads.Fault{fault}, topology, test.started, test.allowed)
		if test.want == "" {
			if len(wrong) > 0 {
				t.Errorf("%+v: %v", test, wrong)
			}
		} else if len(wrong) != 1 || !strings.Contains(wrong[0].Error(), test.want) {
			t.Errorf("%+v: %v", test, wrong)
		}
	}
}
