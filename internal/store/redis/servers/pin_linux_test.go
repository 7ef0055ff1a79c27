package servers

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lockbench/lockbench/internal/launch"
)

func TestPin(t *testing.T) {
	before, err := launch.AllowedCPUs()
	if err != nil || len(before) < 2 {
		t.Skipf("two CPUs are needed, there are %d (%v)", len(before), err)
	}
	procs := runtime.GOMAXPROCS(0)
	for _, source := range []string{"process", "container"} {
		t.Run(source, func(t *testing.T) {
			if source == "container" {
				needDocker(t)
			}
			s, err := Open(t.Context(), Options{Address: source, Pin: true, RunID: "test"})
			if err != nil {
				t.Fatal(err)
			}
			server, generator := s.Describe().PinnedCPUs, s.GeneratorCPUs()
			if len(server) != 1 || !slices.Equal(append(generator, server...), before) {
				t.Errorf("server on %v, generator on %v of %v", server, generator, before)
			}
			if got := affinity(t, 0); !slices.Equal(got, generator) {
				t.Errorf("the generator runs on %v, want %v", got, generator)
			}
			if runtime.GOMAXPROCS(0) != len(generator) {
				t.Errorf("GOMAXPROCS = %d on %d CPUs", runtime.GOMAXPROCS(0), len(generator))
			}
			if p, ok := s.Owned()[0].(*Process); ok {
				if err := p.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := affinity(t, p.PID()); !slices.Equal(got, server) {
					t.Errorf("Redis runs on %v, want %v", got, server)
				}
			}
			if c, ok := s.Owned()[0].(*Container); ok {
				if got := affinity(t, c.PID(t.Context())); !slices.Equal(got, server) {
					t.Errorf("the container runs on %v, want %v", got, server)
				}
			}
			if err := s.Close(context.Background()); err != nil {
				t.Error(err)
			}
			if got := affinity(t, 0); !slices.Equal(got, before) || runtime.GOMAXPROCS(0) != procs {
				t.Errorf("afterwards we run on %v with GOMAXPROCS %d, before on %v with %d", got, runtime.GOMAXPROCS(0), before, procs)
			}
		})
	}
}

func affinity(t *testing.T, pid int) []int {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		t.Fatal(err)
	}
	var cpus []int
	for cpu := range 1024 {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

func TestPinOnOneCPU(t *testing.T) {
	all, err := launch.AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	if err := launch.SetAffinity(0, all[:1]); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := launch.SetAffinity(0, all); err != nil {
			t.Error(err)
		}
	}()
	if _, err := Open(t.Context(), Options{Address: "process", Pin: true}); !errors.Is(err, ErrConfig) {
		t.Errorf("%v, want ErrConfig", err)
	}
}

func TestPinOfUsersServer(t *testing.T) {
	if _, err := Open(t.Context(), Options{Address: process(t).Addr(), Pin: true}); !errors.Is(err, ErrConfig) {
		t.Errorf("%v, want ErrConfig", err)
	}
}
