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

// foreignKey is a key of another program that contains the mark of the run. A fault must not change it, unless the
// fault makes a whole node lose its data.
const foreignKey = "app:{e5700000:1:0}"

// marked sets foreignKey on every node if set is true. Otherwise it returns the number of nodes that have foreignKey.
func marked(t *testing.T, server *Server, set bool) int {
	t.Helper()
	found := 0
	for _, n := range server.nodes {
		if set {
			// Replicas refuse the write, but receive the key from the primary.
			_ = n.observer.Set(t.Context(), foreignKey, 1, time.Hour).Err()
		} else {
			found += int(n.observer.Exists(t.Context(), foreignKey).Val())
		}
	}
	return found
}

// executed reports whether the first node has executed the command, which is named as in INFO commandstats.
func executed(t *testing.T, server *Server, command string) bool {
	t.Helper()
	stats, err := server.nodes[0].observer.Info(t.Context(), "commandstats").Result()
	must(t, err)
	return strings.Contains(stats, "cmdstat_"+command+":")
}

func halted(t *testing.T, o *outcome) {
	// LastedNS also includes the time that the fault needs to begin and to end. No client is blocked during this time, so
	// the stall may be shorter.
	if s := o.strike; !s.Halts || s.LastedNS < int64(200*time.Millisecond) || *s.RecoveryNS < s.LastedNS ||
		s.Stall.NS < int64(100*time.Millisecond) {
		t.Errorf("strike %+v", s)
	}
}

func assertNoStall(t *testing.T, o *outcome) {
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

// slower returns a check that fails unless the slowest release took at least the time `by`.
func slower(by time.Duration) func(*testing.T, *outcome) {
	return func(t *testing.T, o *outcome) {
		if o.Speed.Release.Max.NS < int64(by) {
			t.Errorf("nothing took longer: %+v, %+v", o.strike, o.Speed.Release.Max)
		}
	}
}

// leads returns a check that fails unless the node with the index place is the primary.
func leads(place int) func(*testing.T, *outcome) {
	return func(t *testing.T, o *outcome) {
		if o.server.primary.Load() != o.server.nodes[place] || !o.strike.Halts && o.strike.Overlaps == 0 {
			t.Errorf("node %d is not the primary: strike %+v", place, o.strike)
		}
	}
}

func TestEveryServerFaultTakesEffect(t *testing.T) {
	t.Parallel()
	flushed := func(t *testing.T, o *outcome) {
		assertNoStall(t, o)
		if len(o.Errors) > 0 || !executed(t, o.server, "script|flush") {
			t.Errorf("errors %v", o.Errors)
		}
	}
	woken := func(t *testing.T, o *outcome) {
		assertNoStall(t, o)
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
		// Redsync's clients can stall for 0.1 s even without a fault, if their votes are split. Only the fault stalls them
		// for 0.3 s.
		if o.strike.Stall.NS < int64(300*time.Millisecond) {
			t.Errorf("strike %+v", o.strike)
		}
	}
	silent := func(t *testing.T, o *outcome) {
		// The fault silences the connections of a third of the clients, among them client 0, which waits for a reply until
		// the fault ends. The others must continue.
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
		{"redsync:delay=5ms", "nodes:3", "node-down:at=100ms,for=200ms", brief, 3, assertNoStall},
		{"redsync:delay=5ms", "nodes:3", "node-hang:at=100ms,for=600ms,n=2", brief, 3, hung},
		{"redsync:delay=5ms", "nodes:3", "node-restart-empty:at=100ms,node=0,n=3", untilAnother, 0, overlapped},
		{"redsync:delay=5ms", "nodes:3", "node-expire-early:at=100ms,n=2", untilAnother, 3, overlapped},
		{"redsync:delay=5ms", "nodes:3", "node-drift:at=100ms,for=2s,n=2,percent=10000", untilAnother, 3, overlapped},
		{ // a SET takes twice the delay
			"spin", "", "latency:at=100ms,for=500ms,delay=20ms", brief, 1,
			all(assertNoStall, stalled, slower(40*time.Millisecond)),
		},
		{"pubsub", "", "bandwidth:at=100ms,for=300ms,rate=1", brief, 1, slower(50 * time.Millisecond)}, // 150 bytes
		{"spin", "", "reset:at=100ms,for=100ms", brief, 1, broke},
		{"handoff", "", "partition:at=100ms,for=250ms", brief, 1, halted},
		{"handoff", "", "partition:at=100ms,for=250ms,instances=1", brief, 1, othersGo},
		{"spin", "", "half-open:at=100ms,for=2s,instances=1", brief, 1, silent},
	})
}

// TestDriftIsARate makes the clock of a node run 50 % fast for half a second. A key of the run must lose TTL at this
// rate, and a key of another program must lose none.
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
	// Both keys are set in one transaction. Their TTLs then differ only by the fault, however slow the machine is.
	_, err = client.TxPipelined(t.Context(), func(tx redis.Pipeliner) error {
		tx.Set(t.Context(), ours, 1, time.Hour)
		tx.Set(t.Context(), foreignKey, 1, time.Hour)
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
		left, other = tx.PTTL(t.Context(), ours), tx.PTTL(t.Context(), foreignKey)
		return nil
	})
	must(t, err)
	lost, least := other.Val()-left.Val(), short*percent/100/2
	if most := time.Since(before)*percent/100 + 10*time.Millisecond; lost < least || lost > most {
		t.Errorf("it lost %v, want %v to %v", lost, least, most)
	}
}

// all returns a check that runs each of the given checks.
func all(checks ...func(*testing.T, *outcome)) func(*testing.T, *outcome) {
	return func(t *testing.T, o *outcome) {
		for _, check := range checks {
			check(t, o)
		}
	}
}

// A failover loses a lock that the promoted replica has not received, although the primary confirmed the lock. WAIT
// protects only locks that this replica has confirmed. With independent nodes, a second client can acquire a lock if a
// majority of the nodes does not have it, because they forgot it or were down when it was acquired.
func TestFaultsThatBreakExclusion(t *testing.T) {
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
	// The holder must find that the failover lost its lock. No second holder is required, because another client's acquire
	// must WAIT for a replica, and the replica must first find the new primary.
	forgotten := func(t *testing.T, o *outcome) {
		if o.Safety.LostLeases == 0 {
			t.Errorf("every holder still had its lease: %+v, faults %+v, errors %v", o.Safety, o.Faults, o.Errors)
		}
	}
	// Node 1 is down while a client locks nodes 0 and 2. Then node 2 forgets the lock. When node 1 is back, nodes 1 and 2
	// do not have the lock, so another client can acquire it.
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

func TestCheckReportsImpossibleFaults(t *testing.T) {
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
