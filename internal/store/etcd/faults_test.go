package etcd

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/workloads"
)

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
		for _, m := range server.Own[1:] {
			if err := m.Kill(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		refusedWith(t, store.Options{Address: "etcd://" + server.to.endpoints[0]}, "it has no leader")
	})
}

// disturbed are a run with each fault, and then one without.
func disturbed(t *testing.T, server *Server, faults ...string) {
	for _, text := range faults {
		t.Run(text, func(t *testing.T) {
			run(t, server, next, func(w *workloads.Spec) {
				w.Faults, w.TTL = drive.Faults(t, text), workloads.Duration(2*time.Second)
			})
			if err := server.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
	run(t, server, nil, nil) // finds also what the faults left
}
