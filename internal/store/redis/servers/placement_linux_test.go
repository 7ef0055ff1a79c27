package servers

import (
	"context"
	"slices"
	"testing"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/measure"
)

// The CPUs on which both may run decide what is measured: they are told of a process of
// our own, and of one that is given by its address.
func TestThePlacementIsTold(t *testing.T) {
	t.Parallel()
	here := measure.Affinity(0)
	if len(here) == 0 {
		t.Fatal("not even this process's CPUs are known")
	}
	one := here[:1]
	p, err := startProcess(t.Context(), launch.FreePort, "test", one, nil)
	if err != nil {
		t.Skipf("no redis-server: %v", err)
	}
	defer p.Close(context.Background())
	for _, address := range []string{"process", "redis://" + p.Addr()} {
		want := one
		if address == "process" {
			want = here
		}
		s, err := Open(t.Context(), Options{Address: address, RunID: "placement"})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Describe().AllowedCPUs; !slices.Equal(got, want) {
			t.Errorf("%s: Redis may run on %v, it is said to be %v", address, want, got)
		}
		if !s.Local() {
			t.Errorf("%s is said to be on another machine", address)
		}
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

func TestAProcessIsNotTakenForRedisByItsNumber(t *testing.T) {
	t.Parallel()
	for _, pid := range []int{0, -1, 1, 1 << 30} {
		if isServer(pid, "") {
			t.Errorf("process %d is taken for a Redis", pid)
		}
	}
}
