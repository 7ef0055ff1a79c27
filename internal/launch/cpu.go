package launch

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/store"
)

// Pinning puts a server of ours on the last available CPU and the generator on the others, so that
// neither uses the other's CPU time.
type Pinning struct {
	server, generator []int
	restore           func() error // nil until the generator is pinned
}

// NewPinning chooses the CPUs. It does not pin yet.
func NewPinning() (*Pinning, error) {
	cpus := measure.Affinity(0) // in order
	switch {
	case cpus == nil:
		return nil, fmt.Errorf("%w: --pin: the CPUs that we may use are not known, which only Linux tells (this is %s)",
			store.ErrConfig, runtime.GOOS)
	case len(cpus) < 2:
		return nil, fmt.Errorf("%w: --pin needs two CPUs, one for the servers and one for the generator; there is one",
			store.ErrConfig)
	}
	last := len(cpus) - 1
	return &Pinning{server: cpus[last:], generator: cpus[:last]}, nil
}

// ServerCPUs returns the server's CPUs; nil, which means any, without Pinning.
func (p *Pinning) ServerCPUs() []int {
	if p == nil {
		return nil
	}
	return p.server
}

// GeneratorCPUs returns the generator's CPUs; nil, which means any, without Pinning.
func (p *Pinning) GeneratorCPUs() []int {
	if p == nil {
		return nil
	}
	return slices.Clone(p.generator)
}

// PinGenerator moves this process to its CPUs.
func (p *Pinning) PinGenerator() error {
	if p == nil {
		return nil
	}
	before := append(append([]int{}, p.generator...), p.server...)
	procs := runtime.GOMAXPROCS(len(p.generator))
	p.restore = func() error {
		runtime.GOMAXPROCS(procs)
		return SetAffinity(0, before)
	}
	if err := SetAffinity(0, p.generator); err != nil {
		return errors.Join(fmt.Errorf("pin the generator: %w", err), p.Unpin())
	}
	return nil
}

// Unpin restores the generator's CPUs.
func (p *Pinning) Unpin() error {
	if p == nil || p.restore == nil {
		return nil
	}
	restore := p.restore
	p.restore = nil
	return restore()
}

// CPUTime is the CPU time of a server's processes, one after the other.
type CPUTime struct {
	mu          sync.Mutex
	pid         int     // of the last process; 0 if none is known
	ended, last float64 // seconds: of the processes before it, and of it
}

// Read returns the sum in seconds, with that of all descendants; nil if no process was ever known. pid is the process
// now, 0 if not known. A process that has ended counts with what it had used at the last reading.
func (t *CPUTime) Read(pid int) *float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if pid > 0 {
		if now := cpuOf(pid); now != nil {
			t.enter(pid, *now)
		}
	}
	if t.pid == 0 {
		return nil
	}
	sum := t.ended + t.last
	return &sum
}

// enter notes what a process has used. Readings of one process may go back a little: they count the
// ticks of threads that have ended, and the nanoseconds of the others.
func (t *CPUTime) enter(pid int, used float64) {
	if pid != t.pid {
		t.ended, t.pid, t.last = t.ended+t.last, pid, 0
	}
	t.last = max(t.last, used)
}
