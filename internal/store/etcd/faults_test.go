package etcd

import (
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/workloads"
)

func fault(t *testing.T, text string) workloads.Fault {
	t.Helper()
	f, err := workloads.ParseFault(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Faults come about, nobody is let in beside another, and locks are had afterwards.
func TestFaults(t *testing.T) {
	for _, test := range []struct{ topology, fault string }{
		{"", "kill:at=1s,for=500ms,data=keep"},
		{"", "pause:at=1s,for=500ms"},
		{"", "partition:at=1s,for=500ms"},
		{"", "holder-crash:at=1s"},
		{"etcd:3", "kill:at=1s,for=500ms,data=keep"},
		{"etcd:3", "node-down:at=1s,for=500ms,n=2,node=1"},
		{"etcd:3", "node-hang:at=1s,for=500ms,n=1,node=1"},
	} {
		t.Run(test.topology+" "+test.fault, func(t *testing.T) {
			server := opened(t, store.Options{Topology: test.topology})
			got := run(t, server, map[string]string{"watch": "next"}, func(w *workloads.Spec) {
				w.Faults = []workloads.Fault{fault(t, test.fault)}
				w.Duration = workloads.Duration(6 * time.Second)
				w.TTL = workloads.Duration(2 * time.Second)
			})
			if got.Safety.Overlaps != 0 || got.Speed.Acquisitions == 0 {
				t.Errorf("overlaps %d, acquisitions %d", got.Safety.Overlaps, got.Speed.Acquisitions)
			}
			if len(got.Faults) == 0 {
				t.Errorf("nothing came about: %v", got.Invalid)
			}
			if err := server.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			sound(t, run(t, server, nil, func(*workloads.Spec) {})) // also of what the fault left
			t.Logf("%d acquisitions, invalid %v, errors %v, faults %+v", got.Speed.Acquisitions, got.Invalid, got.Errors, got.Faults)
		})
	}
}

func TestImpossibleFaults(t *testing.T) {
	for _, test := range []struct {
		topology, address, fault, why string
	}{
		{"", "", "kill:data=lose", ""},
		{"", "", "latency", ""},
		{"", "", "node-down", "--topology etcd:3"},
		{"", "", "failover", "--fault failover is of Redis"},
		{"", "", "script-flush", "--fault script-flush is of Redis"},
		{"", "", "crash-between", "compressed"},
		{"etcd:3", "", "kill:data=lose", "data=keep"},
		{"etcd:3", "", "kill:data=keep,node=3", "no member 3"},
		{"etcd:3", "", "node-down:n=2,node=2", "no member 3"},
		{"", "etcd://127.0.0.1:1", "kill", "starts itself"},
		{"", "etcd://127.0.0.1:1", "holder-crash", ""},
	} {
		wrong := Store{}.Layout(store.Options{Topology: test.topology, Address: test.address}).Impossible([]workloads.Fault{fault(t, test.fault)})
		switch {
		case test.why == "" && len(wrong) > 0:
			t.Errorf("%s on %s%s: %v", test.fault, test.topology, test.address, wrong)
		case test.why != "" && (len(wrong) != 1 || !strings.Contains(wrong[0].Error(), test.why)):
			t.Errorf("%s on %s%s: %v, want %q", test.fault, test.topology, test.address, wrong, test.why)
		}
	}
}
