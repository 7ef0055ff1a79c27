package launch

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

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
	cpus, err := AllowedCPUs()
	if err != nil {
		return nil, fmt.Errorf("%w: --pin: %w", store.ErrConfig, err)
	}
	if len(cpus) < 2 {
		return nil, fmt.Errorf("%w: --pin needs two CPUs, one for the servers and one for the generator; there is one", store.ErrConfig)
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

// AllowedCPUs returns the CPUs on which this process may run, in order.
func AllowedCPUs() ([]int, error) {
	cpus := measure.Affinity(0)
	if cpus == nil {
		return nil, fmt.Errorf("the CPUs that we may use are not known, which only Linux tells (this is %s)", runtime.GOOS)
	}
	return cpus, nil
}
