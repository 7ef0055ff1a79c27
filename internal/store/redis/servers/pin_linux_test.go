package servers

import (
	"context"
	"runtime"
	"slices"
	"testing"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/measure"
)

func TestPin(t *testing.T) {
	before := measure.Affinity(0)
	if len(before) < 2 {
		t.Skipf("two CPUs are needed, there are %d", len(before))
	}
	procs := runtime.GOMAXPROCS(0)
	for _, source := range []string{"process", "container"} {
		t.Run(source, func(t *testing.T) {
			if source == "container" {
				needDocker(t)
			}
			s, err := Open(t.Context(), Options{Address: source, Pin: true, RunID: "test"})
			must(t, err)
			server, generator := s.Describe().PinnedCPUs, s.GeneratorCPUs()
			if len(server) != 1 || !slices.Equal(append(generator, server...), before) {
				t.Errorf("server on %v, generator on %v of %v", server, generator, before)
			}
			if got := measure.Affinity(0); !slices.Equal(got, generator) {
				t.Errorf("the generator runs on %v, want %v", got, generator)
			}
			if runtime.GOMAXPROCS(0) != len(generator) {
				t.Errorf("GOMAXPROCS = %d on %d CPUs", runtime.GOMAXPROCS(0), len(generator))
			}
			own := s.Owned()[0]
			must(t, own.Restart(t.Context()))
			if got := measure.Affinity(own.PID()); !slices.Equal(got, server) {
				t.Errorf("Redis runs on %v, want %v", got, server)
			}
			must(t, s.Close(context.Background()))
			if got := measure.Affinity(0); !slices.Equal(got, before) || runtime.GOMAXPROCS(0) != procs {
				t.Errorf("afterwards we run on %v with GOMAXPROCS %d, before on %v with %d", got, runtime.GOMAXPROCS(0),
					before, procs)
			}
		})
	}
	must(t, launch.SetAffinity(0, before[:1]))
	defer func() { must(t, launch.SetAffinity(0, before)) }()
	refuses(t, Options{Address: "process", Pin: true}, ErrConfig)
}

// The CPUs on which both may run decide what is measured: they are told of a process of
// our own, and of one that is given by its address.
func TestThePlacementIsTold(t *testing.T) {
	t.Parallel()
	here := measure.Affinity(0)
	p := begin(t, Options{}.fleet(single{}), here[0])
	for address, want := range map[string][]int{"process": here, "redis://" + p.Addr(): here[:1]} {
		s := open(t, Options{Address: address, RunID: "placement"})
		if got := s.Describe().AllowedCPUs; !slices.Equal(got, want) {
			t.Errorf("%s: Redis may run on %v, it is said to be %v", address, want, got)
		}
		if !s.Local() {
			t.Errorf("%s is said to be on another machine", address)
		}
	}
	for _, pid := range []int{0, -1, 1, 1 << 30} {
		if isServer(pid, "") {
			t.Errorf("process %d is taken for a Redis", pid)
		}
	}
}
