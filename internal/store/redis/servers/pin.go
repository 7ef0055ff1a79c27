package servers

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/lockbench/lockbench/internal/measure"
)

// pinning puts a server of our own on the last CPU we may use and the generator
// on the others, so that neither takes the other's time.
type pinning struct {
	server, generator []int
	restore           func() error // nil until the generator is pinned
}

// newPinning chooses the CPUs. It changes nothing yet.
func newPinning() (*pinning, error) {
	cpus, err := allowedCPUs()
	if err != nil {
		return nil, fmt.Errorf("%w: --pin: %w", ErrConfig, err)
	}
	if len(cpus) < 2 {
		return nil, fmt.Errorf("%w: --pin needs two CPUs, one for Redis and one for the generator; there is one", ErrConfig)
	}
	last := len(cpus) - 1
	return &pinning{server: cpus[last:], generator: cpus[:last]}, nil
}

// serverCPUs are the server's; nil, any, without pinning.
func (p *pinning) serverCPUs() []int {
	if p == nil {
		return nil
	}
	return p.server
}

// pinGenerator moves this process to its CPUs.
func (p *pinning) pinGenerator() error {
	if p == nil {
		return nil
	}
	before := append(append([]int{}, p.generator...), p.server...)
	procs := runtime.GOMAXPROCS(len(p.generator))
	p.restore = func() error {
		runtime.GOMAXPROCS(procs)
		return setAffinity(0, before)
	}
	if err := setAffinity(0, p.generator); err != nil {
		return errors.Join(fmt.Errorf("pin the generator: %w", err), p.unpin())
	}
	return nil
}

// unpin gives the generator back the CPUs it had.
func (p *pinning) unpin() error {
	if p == nil || p.restore == nil {
		return nil
	}
	restore := p.restore
	p.restore = nil
	return restore()
}

// allowedCPUs are those this process may run on, in order.
func allowedCPUs() ([]int, error) {
	cpus := measure.Affinity(0)
	if cpus == nil {
		return nil, fmt.Errorf("the CPUs that we may use are not known, which only Linux tells (this is %s)", runtime.GOOS)
	}
	return cpus, nil
}
