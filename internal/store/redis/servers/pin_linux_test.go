package servers

import (
	"slices"
	"testing"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/measure"
)

func TestPin(t *testing.T) {
	testPin(t, "process")
	before := measure.Affinity(0)
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
