package etcd

import (
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/extent"
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
	t.Parallel()
	server := opened(t, store.Options{})
	disturbed(t, server, "kill:at=100ms,for=300ms,data=keep", "partition:at=100ms,for=300ms", "holder-crash:at=100ms")
	if extent.Thorough() {
		disturbed(t, server, "pause:at=100ms,for=500ms")
	}
}

// So they do on an ensemble, that goes on without a member, its leader too.
func TestEnsemble(t *testing.T) {
	t.Parallel()
	server := opened(t, store.Options{Topology: "etcd:3"})
	runs(t, server)
	disturbed(t, server, "kill:at=100ms,for=500ms,data=keep")
	if extent.Thorough() {
		disturbed(t, server, "node-down:at=100ms,for=500ms,n=2,node=1", "node-hang:at=100ms,for=500ms,n=1,node=1")
	}
	t.Run("without a quorum", func(t *testing.T) {
		for _, m := range server.members[1:] {
			if err := m.own.Kill(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		refusedWith(t, store.Options{Address: "etcd://" + server.members[0].endpoint}, "it has no leader")
	})
}

// disturbed are a run with each fault, and then one without.
func disturbed(t *testing.T, server *Server, faults ...string) {
	for _, text := range faults {
		t.Run(text, func(t *testing.T) {
			run(t, server, next, func(w *workloads.Spec) {
				w.Faults, w.TTL = []workloads.Fault{fault(t, text)}, workloads.Duration(2*time.Second)
			})
			if err := server.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
	run(t, server, nil, nil) // finds also what the faults left
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
