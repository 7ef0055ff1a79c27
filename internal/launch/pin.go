package launch

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/store"
)

// Pinning puts a server of our own on the last CPU we may use and the generator
// on the others, so that neither takes the other's time.
type Pinning struct {
	server, generator []int
	restore           func() error // nil until the generator is pinned
}

// NewPinning chooses the CPUs. It changes nothing yet.
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

// ServerCPUs are the server's; nil, any, without Pinning.
func (p *Pinning) ServerCPUs() []int {
	if p == nil {
		return nil
	}
	return p.server
}

// GeneratorCPUs are the generator's; nil, any, without Pinning.
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

// Unpin gives the generator back the CPUs it had.
func (p *Pinning) Unpin() error {
	if p == nil || p.restore == nil {
		return nil
	}
	restore := p.restore
	p.restore = nil
	return restore()
}

// AllowedCPUs are those this process may run on, in order.
func AllowedCPUs() ([]int, error) {
	cpus := measure.Affinity(0)
	if cpus == nil {
		return nil, fmt.Errorf("the CPUs that we may use are not known, which only Linux tells (this is %s)", runtime.GOOS)
	}
	return cpus, nil
}
