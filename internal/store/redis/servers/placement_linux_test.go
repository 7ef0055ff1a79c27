package servers

import (
	"os/exec"
	"slices"
	"strconv"
	"testing"

	"github.com/lockbench/lockbench/internal/measure"
)

// The description must list the CPUs on which a server may run. They are those of this test for a process that
// lockbench started, and a single one for a user's server that the test has restricted with taskset.
func TestServerCPUsAreReported(t *testing.T) {
	t.Parallel()
	here := measure.Affinity(0)
	p := begin(t, Options{}.fleet(single{}))
	taskset := exec.Command("taskset", "-a", "-c", "-p", strconv.Itoa(here[0]), strconv.Itoa(p.PID()))
	if said, err := taskset.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
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
