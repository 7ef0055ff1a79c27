package stores_test

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/etcd"
	"github.com/lockbench/lockbench/strategies/postgres"
	"github.com/lockbench/lockbench/strategies/zookeeper"
	"github.com/lockbench/lockbench/workloads"
)

// TestRuns runs a lock of each store and lets faults occur. The run must count the server's commands. Mutual exclusion
// must hold during each fault, and locks must be granted after it. An ensemble must continue without one member, even
// its leader.
func TestRuns(t *testing.T) {
	for _, test := range []struct {
		topology string // the topology to start, which the description must show
		lock     strategies.Strategy
		option   string // NAME=VALUE; "" for the defaults
		fence    workloads.Fence
		ttl      time.Duration
		trips    float64 // round trips per acquisition, at least
		command  string  // a command that an acquisition needs, if the server counts it
		often    int64
		faults   []string
		more     []string // more faults, for a thorough test
	}{
		{
			topology: "etcd:1", lock: etcd.Strategy(), option: "next", fence: workloads.FenceAll, ttl: 2 * time.Second,
			trips: 2, command: "Txn", often: 2,
			faults: []string{
				"kill:at=100ms,for=300ms,data=keep", "partition:at=100ms,for=300ms", "holder-crash:at=100ms",
			},
			more: []string{"pause:at=100ms,for=500ms"},
		},
		{
			topology: "etcd:3", lock: etcd.Strategy(), option: "next", fence: workloads.FenceAll, ttl: 2 * time.Second,
			trips: 2, command: "Txn", often: 2,
			faults: []string{"kill:at=100ms,for=500ms,data=keep"},
			more:   []string{"node-down:at=100ms,for=500ms,n=2,node=1", "node-hang:at=100ms,for=500ms,n=1,node=1"},
		},
		{
			topology: "single", lock: postgres.Strategy(), ttl: time.Minute, trips: 2,
			faults: []string{
				"holder-crash:at=100ms", "kill:at=100ms,for=200ms,data=keep", "kill:at=100ms,for=200ms,data=lose",
			},
			more: []string{
				"waiter-crash:at=100ms,n=2", "holder-pause:at=100ms,for=300ms", "pause:at=100ms,for=300ms",
			},
		},
		{
			topology: "single", lock: zookeeper.Strategy(), ttl: time.Second, trips: 3, command: "packet", often: 3,
			faults: []string{"kill:at=100ms,for=100ms,data=lose", "pause:at=100ms,for=1500ms"},
			more: []string{
				"kill:at=100ms,for=100ms,data=keep", "holder-pause:at=100ms",
				"partition:at=100ms,for=500ms,instances=1",
			},
		},
		{
			topology: "zookeeper:3", lock: zookeeper.Strategy(), ttl: 4 * time.Second, trips: 3,
			command: "packet", often: 3,
			faults: []string{"kill:at=100ms,for=1s,data=keep"},
			more:   []string{"node-hang:at=100ms,for=1s,node=1"},
		},
	} {
		name := test.lock.Info.Store
		t.Run(name+" "+test.topology+" "+test.option, func(t *testing.T) {
			t.Parallel()
			server := drive.Open(t, lookup(t, name), store.Options{Address: "process", Topology: test.topology})
			options := map[string]map[string]string{"": nil, "next": {"watch": "next"}}[test.option]
			variant, err := test.lock.Variant(options)
			if err != nil {
				t.Fatal(err)
			}
			run := func(work workloads.Work, faults ...string) *results.Run {
				w := drive.Workload(50)
				w.TTL, w.Work, w.Faults = workloads.Duration(test.ttl), work, drive.Faults(t, faults...)
				if work == workloads.WorkCounter && test.fence != "" {
					w.Fence = test.fence
				}
				return drive.Run(t, server, store.NewRunID(), variant, w)
			}
			got := run(workloads.WorkCounter)
			whole := got.Server.Whole
			if whole == nil || whole.CPU == nil || *whole.CPU <= 0 || whole.RoundTrips == nil ||
				*whole.ClientBytesIn < 1000 || *whole.ClientBytesOut < 1000 {
				t.Fatalf("what the server did is not known: %+v", whole)
			}
			if per := float64(*whole.RoundTrips) / float64(whole.Acquisitions); per < test.trips {
				t.Errorf("%.2f round trips an acquisition", per)
			}
			if n := test.often * whole.Acquisitions; test.command != "" && whole.Commands[test.command] < n {
				t.Errorf("%d acquisitions and %v", whole.Acquisitions, whole.Commands)
			}
			if lost := got.Safety.LostUpdates; lost == nil || *lost != 0 {
				t.Errorf("lost updates: %v", lost)
			}
			if extent.Thorough() {
				test.faults = append(test.faults, test.more...)
			}
			for _, fault := range test.faults {
				t.Run(fault, func(t *testing.T) {
					run(workloads.WorkNone, fault)
					if err := server.Settle(t.Context()); err != nil {
						t.Fatal(err)
					}
				})
			}
			run(workloads.WorkNone) // also finds what the faults left
		})
	}
}
